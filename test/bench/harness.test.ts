/** The parts of the bench that decide what its numbers mean: order, medians, ratios, arguments, bounded children. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { parseArguments, UsageError } from "../../bench/arguments.mjs";
import { measureInChild } from "../../bench/child.mjs";
import { runRounds, sumUp } from "../../bench/harness.mjs";
import { formatReport } from "../../bench/report.mjs";
import { ratioPerRound, rotate, summarize } from "../../bench/statistics.mjs";
import { loadSuite, suiteNames } from "../../bench/suites.mjs";
import type { Effort, Job, Ratio, Suite } from "../../bench/types.ts";

const budget = { warmUpMs: 1, measureMs: 1 };
const full: Effort = { rounds: 3, budget, quick: false };
const metrics = { ops: { unit: "pairs/s", better: "higher" }, us: { unit: "µs", better: "lower" } } as const;

const open = async () => null;
const run = async () => ({});

function suiteOf(overrides: Partial<Suite> = {}): Suite {
  return {
    name: "sample",
    floor: "b",
    metrics,
    measurements: { speed: { run }, slow: { run } },
    contenders: [
      { name: "a", measurements: ["speed"], fullOnly: ["slow"], open },
      { name: "b", measurements: ["speed"], open },
      { name: "c", measurements: ["speed"], fullOnly: ["slow"], open },
    ],
    ratios: {},
    ...overrides,
  };
}

function toBestPeer(metric: string): Ratio {
  return {
    of: { contender: "a", metric },
    to: [
      { contender: "b", metric },
      { contender: "c", metric },
    ],
  };
}

async function orderOf(suite: Suite, effort: Effort): Promise<string[]> {
  const jobs: string[] = [];
  await runRounds(suite, effort, async ({ measurement, contender }) => {
    jobs.push(`${measurement} ${contender}`);
    return {};
  });
  return jobs;
}

describe("statistics", () => {
  it("takes the middle value, whatever the order", () => {
    expect(summarize([10, 9, 100])).toEqual({ median: 10, min: 9, max: 100 });
  });

  it("takes the mean of the middle two of an even number", () => {
    expect(summarize([4, 1, 2, 8])).toEqual({ median: 3, min: 1, max: 8 });
  });

  it("refuses a median of nothing", () => {
    expect(() => summarize([])).toThrow(RangeError);
  });

  it("rotates by one place per turn and begins again", () => {
    const turns = [0, 1, 2, 3].map((turn) => rotate(["a", "b", "c"], turn).join(""));
    expect(turns).toEqual(["abc", "bca", "cab", "abc"]);
  });

  it("divides within the round", () => {
    // The quotient of the two medians would be 1.
    const rounds = [
      { a: { ops: 20 }, b: { ops: 10 } },
      { a: { ops: 80 }, b: { ops: 40 } },
      { a: { ops: 2 }, b: { ops: 20 } },
    ];
    const ratio = { of: { contender: "a", metric: "ops" }, to: [{ contender: "b", metric: "ops" }] };
    expect(ratioPerRound(rounds, ratio, metrics)).toEqual([2, 2, 0.1]);
  });

  it("compares with the best peer of each round, by the sense of the metric", () => {
    const rounds = [
      { a: { ops: 12, us: 12 }, b: { ops: 3, us: 3 }, c: { ops: 4, us: 4 } },
      { a: { ops: 12, us: 12 }, b: { ops: 6, us: 6 }, c: { ops: 2, us: 2 } },
    ];
    expect(ratioPerRound(rounds, toBestPeer("ops"), metrics)).toEqual([3, 2]);
    expect(ratioPerRound(rounds, toBestPeer("us"), metrics)).toEqual([4, 6]);
  });

  it("leaves out rounds in which something was not measured again", () => {
    const ratio = { of: { contender: "a", metric: "ops" }, to: [{ contender: "b", metric: "ops" }] };
    const rounds = [{ a: { ops: 4 }, b: { ops: 2 } }, { a: { ops: 9 } }];
    expect(ratioPerRound(rounds, ratio, metrics)).toEqual([2]);
  });

  it("refuses a ratio to something that was not measured", () => {
    const ratio = { of: { contender: "a", metric: "ops" }, to: [{ contender: "b", metric: "ops" }] };
    expect(() => ratioPerRound([{ a: { ops: 1 } }], ratio, metrics)).toThrow("ops of b");
  });
});

describe("rounds", () => {
  it("interleave the contenders of each measurement and let another one begin in each round", async () => {
    const order = await orderOf(suiteOf(), full);
    expect(order.slice(0, 5)).toEqual(["speed a", "speed b", "speed c", "slow a", "slow c"]);
    expect(order.slice(5, 10)).toEqual(["speed b", "speed c", "speed a", "slow c", "slow a"]);
    expect(order.slice(10)).toEqual(["speed c", "speed a", "speed b", "slow a", "slow c"]);
  });

  it("leave out what is too slow for --quick", async () => {
    expect(await orderOf(suiteOf(), { ...full, rounds: 1, quick: true })).toEqual([
      "speed a",
      "speed b",
      "speed c",
    ]);
  });

  it("are fewer for --quick where a suite says so, and some contenders take part in the first alone", async () => {
    const quick = { ...full, quick: true };
    const suite = suiteOf({ quickRounds: 2 });
    const [first, ...others] = suite.contenders;
    if (first === undefined) throw new Error("there is no contender");
    const contenders = [{ ...first, onceInQuick: ["speed"] }, ...others];
    expect(await orderOf({ ...suite, contenders }, quick)).toEqual([
      "speed a",
      "speed b",
      "speed c",
      "speed c",
      "speed b",
    ]);
    expect((await orderOf({ ...suite, contenders }, full)).filter((job) => job === "speed a")).toHaveLength(
      3,
    );
  });

  it("measure only once what hardly varies", async () => {
    const suite = suiteOf({ measurements: { speed: { run, once: true }, slow: { run } } });
    const order = await orderOf(suite, full);
    expect(order.filter((job) => job.startsWith("speed"))).toEqual(["speed a", "speed b", "speed c"]);
    expect(order.filter((job) => job.startsWith("slow"))).toHaveLength(6);
  });

  it("tear down what was set up when a measurement fails", async () => {
    const events: unknown[] = [];
    const suite = suiteOf({
      setup: async () => "servers",
      teardown: async (context) => void events.push("teardown", context),
    });
    const failing = async ({ context }: Job) => {
      events.push("measure", context);
      throw new Error("no luck");
    };
    await expect(runRounds(suite, full, failing)).rejects.toThrow("no luck");
    expect(events).toEqual(["measure", "servers", "teardown", "servers"]);
  });

  it("sum up to medians, ratios to the floor and the ratios of the suite", () => {
    const suite = suiteOf({
      ratios: {
        a_vs_c: { of: { contender: "a", metric: "ops" }, to: [{ contender: "c", metric: "ops" }] },
        full_only: {
          fullOnly: true,
          of: { contender: "a", metric: "us" },
          to: [{ contender: "c", metric: "us" }],
        },
      },
    });
    const rounds = [
      { a: { ops: 10 }, b: { ops: 20 }, c: { ops: 40, us: 5 } },
      { a: { ops: 30 }, b: { ops: 10 }, c: { ops: 10, us: 7 } },
      { a: { ops: 20 }, b: { ops: 20 }, c: { ops: 10, us: 6 } },
    ];
    const report = sumUp(suite, { ...full, quick: true }, rounds);
    expect(report).toMatchObject({ suite: "sample", rounds: 3, quick: true, node: process.version });
    expect(report.contenders).toEqual({
      a: { ops: { unit: "pairs/s", median: 20, min: 10, max: 30, vsFloor: 1 } },
      b: { ops: { unit: "pairs/s", median: 20, min: 10, max: 20, vsFloor: 1 } },
      c: {
        ops: { unit: "pairs/s", median: 10, min: 10, max: 40, vsFloor: 1 },
        us: { unit: "µs", median: 6, min: 5, max: 7, vsFloor: null },
      },
    });
    expect(report.ratios).toEqual({ a_vs_c: 2 });
    expect(report.ratioSpread).toEqual({ a_vs_c: [0.25, 3] });

    const text = formatReport(report);
    expect(text).toMatch(/^c +us +6 \[5–7\] µs +–$/mu);
    expect(text).toMatch(/^a_vs_c +2 \[0\.25–3\]$/mu);
  });
});

describe("arguments", () => {
  const suites = ["memory", "redis"];

  it("give a suite and two switches in any order", () => {
    expect(parseArguments(["memory"], suites)).toEqual({
      help: false,
      suite: "memory",
      quick: false,
      json: false,
    });
    expect(parseArguments(["--json", "redis", "--quick"], suites)).toEqual({
      help: false,
      suite: "redis",
      quick: true,
      json: true,
    });
  });

  it("give help before anything else is asked for", () => {
    expect(parseArguments(["--help"], suites)).toEqual({ help: true });
  });

  it.each([[[]], [["nonsense"]], [["memory", "redis"]], [["memory", "--fast"]]])("refuse %j", (argv) => {
    expect(() => parseArguments(argv, suites)).toThrow(UsageError);
  });

  it("name the suites and exit with 64 when there is no such suite", async () => {
    const main = fileURLToPath(new URL("../../bench/main.mjs", import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, "nonsense"], { encoding: "utf8" });
    expect({ status, stdout }).toEqual({ status: 64, stdout: "" });
    expect(stderr).toContain(`unknown suite "nonsense"; suites: ${(await suiteNames()).join(", ")}`);
  });
});

describe("suites", () => {
  it("carry the name of their file and refer only to what they have", async () => {
    for (const name of await suiteNames()) {
      const suite = await loadSuite(name);
      const contenders = suite.contenders.map((contender) => contender.name);
      const used = suite.contenders.flatMap(({ measurements, fullOnly = [] }) => [
        ...measurements,
        ...fullOnly,
      ]);
      const points = Object.values(suite.ratios).flatMap(({ of, to }) => [of, ...to]);
      expect(suite.name).toBe(name);
      expect(contenders).toContain(suite.floor);
      expect(contenders).toEqual(expect.arrayContaining(points.map(({ contender }) => contender)));
      expect(Object.keys(suite.metrics)).toEqual(expect.arrayContaining(points.map(({ metric }) => metric)));
      expect(new Set(used)).toEqual(new Set(Object.keys(suite.measurements)));
    }
  });
});

describe("children", () => {
  const job: Job = { suite: "sample", contender: "a", measurement: "speed", budget, context: null };

  async function measureWith(script: string, deadlineMs: number) {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
    try {
      const file = join(folder, "child.mjs");
      await writeFile(file, script);
      return await measureInChild(job, { entry: pathToFileURL(file), deadlineMs });
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  it("give the values of their last line", async () => {
    const script = `console.log("a peer says hello");
      console.log(JSON.stringify({ ops: JSON.parse(process.argv[2]).budget.measureMs }));`;
    expect(await measureWith(script, 30_000)).toEqual({ ops: 1 });
  });

  it("are killed when they hang", async () => {
    const hanging = measureWith("for (;;);", 200);
    await expect(hanging).rejects.toThrow(/sample \/ speed \/ a: child \d+ did not end within 200 ms/u);
  });

  it("fail with their own words", async () => {
    const failing = measureWith(`throw new Error("no such server");`, 30_000);
    await expect(failing).rejects.toThrow(/failed with exit code 1[^]*no such server/u);
  });

  it.each(["", "null", "[1", '{"ops":"fast"}', '{"ops":null}'])("fail when they print %j", async (line) => {
    await expect(measureWith(`console.log(${JSON.stringify(line)})`, 30_000)).rejects.toThrow(
      "printed no values",
    );
  });
});
