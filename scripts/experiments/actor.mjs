/** One client of an experiment in a process of its own, with the library that it is told: does one thing after the other, as it is told. */
import { RemoteResource } from "../../dist/verify/live/resource-client.js";
import { libraries } from "./libraries.mjs";

/** @typedef {import("./libraries.mjs").Held} Held */
/** @typedef {import("./libraries.mjs").OwnershipGuard} OwnershipGuard */

/** When the library told that a lock was lost. @type {Map<string, bigint>} */
const lostAt = new Map();
/** When it was renewed, and until when it is believed since. @type {Map<string, { at: bigint, validUntil: bigint }[]>} */
const renewals = new Map();
/** @type {Map<string, Held>} */
const held = new Map();
/** @type {import("./libraries.mjs").Acquire} */
let acquire = async () => {
  throw new Error("not opened");
};
/** @type {{ fenced: RemoteResource, unfenced: RemoteResource } | null} */
let resources = null;

const ears = {
  renewed: (/** @type {string} */ name) => {
    const at = process.hrtime.bigint();
    const validUntil = untilWhen(held.get(name), at);
    if (validUntil !== null) renewals.set(name, [...(renewals.get(name) ?? []), { at, validUntil }]);
  },
  lost: (/** @type {string} */ name) => void lostAt.set(name, process.hrtime.bigint()),
};

/** @param {Held | undefined} one @param {bigint} now */
function untilWhen(one, now) {
  const validForMs = one?.validForMs() ?? null;
  return validForMs === null ? null : now + BigInt(Math.floor(validForMs * 1e6));
}

/** What can be asked. @type {Record<string, (...args: any[]) => Promise<unknown>>} */
const deeds = {
  async open(
    /** @type {string} */ library,
    /** @type {import("./libraries.mjs").Setting} */ setting,
    /** @type {{ fenced: number, unfenced: number }} */ ports,
  ) {
    resources = {
      fenced: new RemoteResource(ports.fenced),
      unfenced: new RemoteResource(ports.unfenced),
    };
    const make = libraries[library];
    if (make === undefined) throw new Error(`there is no ${library}`);
    acquire = await make(setting, ears);
  },

  async acquire(/** @type {string} */ name, /** @type {number} */ waitMs) {
    const invokedAt = process.hrtime.bigint();
    const startedAt = performance.now();
    const one = await acquire(name, waitMs);
    const okAt = process.hrtime.bigint();
    held.set(name, one);
    const { token } = one;
    return {
      invokedAt,
      okAt,
      validUntil: untilWhen(one, okAt),
      token,
      tookMs: performance.now() - startedAt,
    };
  },

  /** Where the logs of a name end. */
  async read(/** @type {string} */ name, /** @type {bigint} */ token) {
    return {
      fenced: await resources?.fenced.read(name, token),
      unfenced: await resources?.unfenced.read(name, token),
    };
  },

  /** Blocks the event loop, if told so, and writes without another look at the lock, unless told to look; says what the library says. */
  async write(
    /** @type {string} */ name,
    /** @type {any} */ write,
    /** @type {{ fenced: number | null, unfenced: number | null }} */ at,
    { hangMs = 0, ifHeld = false } = {},
  ) {
    // Nothing else runs in this process meanwhile, and the processor is left to the others.
    if (hangMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, hangMs);
    const believes = held.get(name)?.believes() ?? false;
    const seenAt = process.hrtime.bigint();
    if (ifHeld && !believes) return { believes, seenAt, fenced: null, unfenced: null };
    const [fenced, unfenced] = await Promise.all([
      at.fenced === null ? null : resources?.fenced.write({ ...write, at: at.fenced }),
      at.unfenced === null ? null : resources?.unfenced.write({ ...write, at: at.unfenced }),
    ]);
    return { believes, seenAt, fenced, unfenced };
  },

  /** Writes to etcd in a transaction that compares who owns the lock; says whether it was done, and whether the library says afterwards that it holds. */
  async put(/** @type {string} */ name, /** @type {string} */ endpoint, /** @type {string} */ value) {
    const guard = held.get(name)?.guard;
    if (guard === undefined || guard === null) throw new Error("there is nothing to compare");
    const { key, target, result, createRevision } = guard;
    const answer = await fetch(`${endpoint}/v3/kv/txn`, {
      method: "POST",
      body: JSON.stringify({
        compare: [{ key: base64(key), target, result, create_revision: String(createRevision) }],
        success: [{ request_put: { key: base64(`guarded/${name}`), value: base64(value) } }],
      }),
    });
    const told = await answer.text();
    if (!answer.ok) throw new Error(`etcd: ${told}`);
    // It leaves out what is false.
    return { done: JSON.parse(told).succeeded === true, believes: held.get(name)?.believes() ?? false };
  },

  async lostAt(/** @type {string} */ name) {
    return lostAt.get(name) ?? null;
  },

  /** What has happened to a lock since it was granted. */
  async story(/** @type {string} */ name) {
    return { lostAt: lostAt.get(name) ?? null, renewals: renewals.get(name) ?? [] };
  },

  async release(/** @type {string} */ name) {
    const one = held.get(name);
    for (const each of [held, lostAt, renewals]) each.delete(name);
    try {
      await one?.release();
    } catch {
      // A lock that was lost cannot be released.
    }
  },
};

const base64 = (/** @type {string} */ text) => Buffer.from(text).toString("base64");

process.on(
  "message",
  (/** @type {{ call: number, what: string, args: unknown[] }} */ order) => void obey(order),
);

/** @param {{ call: number, what: string, args: unknown[] }} order */
async function obey({ call, what, args }) {
  try {
    const deed = deeds[what];
    if (deed === undefined) throw new Error(`nobody can ${what}`);
    process.send?.({ call, value: await deed(...args) });
  } catch (error) {
    const text = error instanceof Error ? ("code" in error ? String(error.code) : error.name) : String(error);
    process.send?.({ call, error: text });
  }
}

process.on("disconnect", () => process.exit());
process.on("SIGINT", () => {});
// A library of others that leaves a rejection unhandled is not to end the experiment.
process.on("unhandledRejection", () => {});
process.on("uncaughtException", () => {});
