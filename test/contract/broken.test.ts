/** The contract against backends that are broken on purpose: each is caught, and each case catches at least one. */
import { describe, expect, it } from "vitest";
import type { Answer, Snapshot } from "../../src/core/backend.ts";
import { contractCases, type Pace, runCase, settle } from "../../src/testing/index.ts";
import { type Broken, brokenBackends, brokenBy, sound } from "../../src/testing/broken/index.ts";
import { below, seeded } from "../../src/testing/random.ts";
import { copied } from "../../src/testing/stage.ts";
import { caughtBy } from "./caught-by.ts";

/** Fewer rounds than for a sound backend: what is broken shows soon. */
const pace: Pace = { patienceMs: 2_000, interleavings: 10, cancellations: 40 };

/** The names of all cases that fail, each with its reason. */
async function failuresOf(broken: Broken): Promise<Map<string, unknown>> {
  const failures = new Map<string, unknown>();
  for (const each of contractCases) {
    await runCase(each, broken.open, pace).catch((error: unknown) => failures.set(each.name, error));
  }
  return failures;
}

/** Sound, but each call takes effect some turns of the event loop later, and is answered later still. */
const slow = brokenBy("slow", () => {
  const random = seeded(7);
  const pause = async (): Promise<void> => {
    for (let turns = below(random, 4); turns > 0; turns--) await settle();
  };
  const late = async <T>(call: () => T): Promise<Awaited<T>> => {
    await pause();
    const answer = await call();
    await pause();
    return answer;
  };
  return (inner) => ({
    traits: { ...inner.traits, callOrder: false },
    append: (queue, entry) => late(() => copiedOrNull(inner.append(queue, entry))),
    renew: (renewals) => late(() => inner.renew(renewals)),
    remove: (queue, id, evict, seq) => late(() => inner.remove(queue, id, evict, seq)),
    list: (queue) => late(() => inner.list(queue)),
    watch: (queue, self, target, onChange) => late(() => inner.watch(queue, self, target, onChange)),
  });
});

/** Memory gives live views; a network gives what was so at one moment. */
async function copiedOrNull(answer: Answer<Snapshot | null>): Promise<Snapshot | null> {
  const said = await answer;
  return said && copied(said);
}

describe("the contract", () => {
  it("is passed by the layer that breaks nothing", async () => {
    const failures = await failuresOf(sound);
    expect(Object.fromEntries(failures)).toEqual({});
  }, 60_000);

  it("is passed by a store that takes its time, as one behind a network does", async () => {
    const failures = await failuresOf(slow);
    expect(Object.fromEntries(failures)).toEqual({});
  }, 60_000);

  for (const broken of brokenBackends) {
    it(`catches: ${broken.name}`, async () => {
      const failures = await failuresOf(broken);
      const expected = caughtBy[broken.name] ?? [];
      expect([...failures.keys()]).toEqual(expect.arrayContaining([...expected]));
      expect(expected).not.toEqual([]);
    }, 60_000);
  }
});

describe("the table", () => {
  it("names all broken backends, and no others", () => {
    expect(Object.keys(caughtBy).toSorted()).toEqual(brokenBackends.map(({ name }) => name).toSorted());
  });

  it("names all cases, and no others: a case that catches nothing is worthless", () => {
    const named = new Set(Object.values(caughtBy).flat());
    expect(named).toEqual(new Set(contractCases.map(({ name }) => name)));
  });

  it("is about names that are unique", () => {
    expect(new Set(contractCases.map(({ name }) => name)).size).toBe(contractCases.length);
    expect(new Set(brokenBackends.map(({ name }) => name)).size).toBe(brokenBackends.length);
  });
});
