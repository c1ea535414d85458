/** Listings: who holds what, semaphores too, and what changed from one look to the next. */
import { afterEach, describe, expect, it } from "vitest";
import { Changes } from "../../src/cli/changes.ts";
import { listing } from "../../src/cli/commands/ls.ts";
import { entryLines } from "../../src/cli/commands/show.ts";
import { changeLine } from "../../src/cli/commands/watch.ts";
import { entryRecord, type QueueView, viewAll, viewName } from "../../src/cli/picture.ts";
import { toJson } from "../../src/cli/output.ts";
import { LockManager } from "../../src/core/manager.ts";
import { memory, remembering } from "./rig.ts";

let stores = 0;
const opened: LockManager[] = [];

/** A store with one client, and a function that looks at it. */
async function store(label?: string) {
  const name = `listing-${++stores}`;
  const locks = new LockManager(await memory(name), { label });
  const looking = await memory(name);
  opened.push(locks);
  return { locks, looking, look: (prefix = "") => viewAll(looking, prefix) };
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

/** Lines with what differs from run to run replaced by what it is. */
function steady(lines: readonly string[]): readonly string[] {
  return lines.map((line) =>
    line
      .replace(/\S+:\d+/g, (word) => (word.startsWith("order") ? word : "host:pid"))
      .replace(/\d{13,}/g, "TOKEN")
      .replace(/\b\d+(\.\d)?s\b/g, "TIME")
      .replace(/ +/g, " ")
      .trim(),
  );
}

function sample(views: readonly QueueView[]): QueueView {
  const [view] = views;
  if (view === undefined) throw new Error("nothing is there");
  return view;
}

describe("ls", () => {
  it("shows a line per holder, in the order of names", async () => {
    const { locks, look } = await store("billing");
    await locks.acquire("order:42", { metadata: "invoice 17" });
    await locks.acquire("report", { mode: "shared" });
    await locks.acquire("report", { mode: "shared" });
    await locks.semaphore("api", 10).acquire({ weight: 2 });
    void locks.acquire("order:42").catch(() => {});
    await locks.query();
    expect(steady(listing(await look(), remembering().output))).toEqual([
      "NAME MODE HOLDER TOKEN SINCE EXPIRES WAITING METADATA",
      "api 2 of 10 host:pid billing TOKEN TIME TIME 0",
      "order:42 exclusive host:pid billing TOKEN TIME TIME 1 invoice 17",
      "report shared host:pid billing TOKEN TIME TIME 0",
      "report shared host:pid billing TOKEN TIME TIME",
    ]);
  });

  it("finds names by their start, those of semaphores too", async () => {
    const { locks, look } = await store();
    await locks.acquire("order:1");
    await locks.acquire("other");
    await locks.semaphore("order:2", 3).acquire();
    const found = (await look("order:")).map(({ name, kind }) => `${kind} ${name}`);
    expect(found).toEqual(["lock order:1", "semaphore order:2"]);
  });

  it("says so when nothing is there", async () => {
    const { look } = await store();
    expect(listing(await look(), remembering().output)).toEqual(["nothing is locked"]);
  });

  it("fits a narrow terminal", async () => {
    const { locks, look } = await store("a-label-that-is-rather-long");
    await locks.acquire("a-name-that-is-longer-than-most", { metadata: "a remark" });
    const { output } = remembering({ tty: true, columns: 50, env: { NO_COLOR: "1" } });
    for (const line of listing(await look(), output)) expect(line.length).toBeLessThanOrEqual(50);
  });

  it("shows no control characters of others", async () => {
    const { locks, look } = await store("\u001b[31mred");
    await locks.acquire("a\u001b[2Jb", { metadata: "\u0007" });
    const text = listing(await look(), remembering().output).join("\n");
    expect(text).toContain("a\\x1b[2Jb");
    expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });
});

describe("show", () => {
  it("shows the lock and the semaphore of a name apart, holders before waiters", async () => {
    const { locks, looking } = await store();
    await locks.acquire("x");
    void locks.acquire("x").catch(() => {});
    await locks.semaphore("x", 2).acquire();
    await locks.query();
    const { output } = remembering();
    const lines = (await viewName(looking, "x")).flatMap((view) =>
      entryLines(view, [...view.held, ...view.waiting], output),
    );
    expect(steady(lines)).toEqual([
      "lock x",
      "STATE MODE WHO TOKEN SINCE EXPIRES",
      "holds exclusive host:pid TOKEN TIME TIME",
      "waits exclusive host:pid TOKEN TIME TIME",
      "semaphore x",
      "STATE MODE WHO TOKEN SINCE EXPIRES",
      "holds 1 of 2 host:pid TOKEN TIME TIME",
    ]);
  });

  it("for machines says all there is, the token as text", async () => {
    const { locks, look } = await store("billing");
    const permit = await locks.semaphore("api", 10).acquire({ weight: 2, metadata: "m" });
    const view = sample(await look());
    const [entry] = view.held;
    if (entry === undefined) throw new Error("nobody holds");
    expect(JSON.parse(toJson(entryRecord(view, entry)))).toMatchObject({
      name: "api",
      kind: "semaphore",
      state: "held",
      mode: "shared",
      token: String(permit.token),
      owner: { pid: process.pid, label: "billing" },
      clientId: locks.clientId,
      metadata: "m",
      weight: 2,
      permits: 10,
    });
  });
});

describe("changes", () => {
  it("are who is there at first, and then who came, was granted and left", async () => {
    const { locks, look } = await store();
    const changes = new Changes();
    const told = async (): Promise<readonly string[]> =>
      changes.since(await look()).map(({ what, entry }) => `${what} ${entry.seq}`);

    const first = await locks.acquire("x");
    expect(await told()).toEqual([`granted ${first.token}`]);
    expect(await told()).toEqual([]);

    const waiting = locks.acquire("x");
    await locks.query();
    const [wait = ""] = await told();
    expect(wait).toMatch(/^waits \d+$/);

    await first.release();
    const second = await waiting;
    expect(wait).toBe(`waits ${second.token}`);
    expect(await told()).toEqual([`left ${first.token}`, `granted ${second.token}`]);
  });

  it("are lines for people", async () => {
    const { locks, look } = await store("billing");
    await locks.acquire("order:42", { metadata: "m" });
    const [change] = new Changes().since(await look());
    if (change === undefined) throw new Error("nothing changed");
    expect(steady([changeLine(change)])).toEqual([
      "granted order:42 exclusive host:pid billing token TOKEN m",
    ]);
  });
});
