/** What every guard must do, as one table of cases; how a guard is opened, written and read is left to its test. */
import assert from "node:assert/strict";
import { LockError } from "../../src/core/errors.ts";
import { highestToken } from "../../src/fencing/token.ts";

/** One guarded resource, not written yet. */
export interface Subject {
  /** Writes a value under a token. */
  write(token: bigint, value: string): Promise<unknown>;
  /** What was written last; null if nothing. */
  read(): Promise<string | null>;
  show(token: bigint): Promise<unknown>;
  highest(): Promise<bigint | null>;
  /** The same resource behind a guard that has just started and remembers nothing of its own; null where nothing is kept. */
  restart: (() => Promise<Subject>) | null;
}

/** A case, and what it needs. */
export interface Case {
  readonly name: string;
  readonly run: (subject: Subject, next: () => Promise<Subject>, meetings: number) => Promise<void>;
  readonly needsRestart?: boolean;
}

/** How many meetings of two writers are under way at once, each on a resource of its own. */
const lanes = 4;

const above = 2n ** 53n;

async function isRefused(writing: Promise<unknown>, token: bigint, highest: bigint): Promise<void> {
  await assert.rejects(writing, (error) => {
    assert.ok(error instanceof LockError, `not a LockError: ${String(error)}`);
    assert.equal(error.code, "LOCK_STALE_TOKEN", error.message);
    // Which token, against which, and what to do.
    assert.match(error.message, new RegExp(`\\b${highest}\\b.*\\b${token}\\b.*start over`));
    return true;
  });
}

/** The table. */
export const cases: readonly Case[] = [
  {
    name: "the first token is accepted, whatever it is",
    async run(subject) {
      assert.equal(await subject.highest(), null);
      await subject.write(7n, "first");
      assert.equal(await subject.read(), "first");
      assert.equal(await subject.highest(), 7n);
    },
  },
  {
    name: "a stale token is refused, and nothing is written",
    async run(subject) {
      await subject.write(34n, "new");
      await isRefused(subject.write(33n, "old"), 33n, 34n);
      assert.equal(await subject.read(), "new");
    },
  },
  {
    name: "an equal token is accepted: it is the same holder",
    async run(subject) {
      await subject.write(34n, "one");
      await subject.write(34n, "two");
      assert.equal(await subject.read(), "two");
    },
  },
  {
    name: "a newer token is accepted, with gaps",
    async run(subject) {
      await subject.write(34n, "one");
      await subject.write(35n, "two");
      await subject.write(1_000_000n, "three");
      assert.equal(await subject.read(), "three");
      assert.equal(await subject.highest(), 1_000_000n);
    },
  },
  {
    name: "a refused token does not lower the highest",
    async run(subject) {
      await subject.write(34n, "new");
      await isRefused(subject.write(30n, "old"), 30n, 34n);
      await isRefused(subject.write(32n, "old"), 32n, 34n);
      assert.equal(await subject.highest(), 34n);
    },
  },
  {
    name: "tokens are compared as numbers, not as text",
    async run(subject) {
      await subject.write(9n, "nine");
      await subject.write(10n, "ten");
      await isRefused(subject.write(9n, "nine again"), 9n, 10n);
      assert.equal(await subject.read(), "ten");
    },
  },
  {
    name: "tokens above 2^53 are told apart, up to the highest",
    async run(subject) {
      await subject.write(above + 1n, "odd");
      await isRefused(subject.write(above, "even"), above, above + 1n);
      await subject.write(highestToken - 1n, "last but one");
      await subject.write(highestToken, "last");
      await isRefused(subject.write(highestToken - 1n, "late"), highestToken - 1n, highestToken);
      assert.equal(await subject.read(), "last");
      assert.equal(await subject.highest(), highestToken);
    },
  },
  {
    name: "a token that was only shown refuses older ones, and writes nothing",
    async run(subject) {
      await subject.write(33n, "old");
      await subject.show(34n);
      assert.equal(await subject.read(), "old");
      await isRefused(subject.write(33n, "late"), 33n, 34n);
      await isRefused(subject.show(33n), 33n, 34n);
      await subject.write(34n, "new");
      assert.equal(await subject.read(), "new");
    },
  },
  {
    name: "the highest token is kept when the guard's process starts anew",
    needsRestart: true,
    async run(subject) {
      await subject.write(above + 3n, "before");
      assert.ok(subject.restart !== null);
      const again = await subject.restart();
      await isRefused(again.write(above + 2n, "late"), above + 2n, above + 3n);
      assert.equal(await again.read(), "before");
      await again.write(above + 3n, "after");
      assert.equal(await again.read(), "after");
    },
  },
  {
    name: "two writers that meet over and over: a stale write never comes last",
    async run(_subject, next, meetings) {
      const subjects = await Promise.all(Array.from({ length: lanes }, next));
      await Promise.all(subjects.map((subject) => meet(subject, meetings / lanes)));
    },
  },
];

/** An old and a new holder write at the same moment, over and over. Whatever the order, the new one's value stays. */
async function meet(subject: Subject, rounds: number): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const [old, fresh] = [BigInt(2 * round), BigInt(2 * round + 1)];
    const calls = [() => subject.write(old, `old ${round}`), () => subject.write(fresh, `new ${round}`)];
    const turned = round % 2 === 0;
    const settled = await Promise.allSettled((turned ? calls.toReversed() : calls).map((call) => call()));
    const [ofOld, ofNew] = turned ? settled.toReversed() : settled;
    assert.equal(ofNew?.status, "fulfilled", `round ${round}: ${String(Object(ofNew)["reason"])}`);
    if (ofOld?.status === "rejected")
      assert.equal(ofOld.reason.code, "LOCK_STALE_TOKEN", String(ofOld.reason));
    assert.equal(await subject.read(), `new ${round}`, `round ${round}: a stale write came last`);
  }
}
