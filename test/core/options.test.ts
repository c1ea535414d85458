/** What is refused before anything is queued, and with which error. */
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { rejection } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";
import { type Untyped, untyped } from "../helpers/untyped.ts";

const nothing = (): void => {};
const { signal } = new AbortController();

async function refusal(call: (locks: Untyped) => Promise<unknown>): Promise<unknown> {
  const { locks, backend } = rig();
  const error = await rejection(call(untyped(locks)));
  await settle();
  expect(backend.calls).toEqual([]);
  return error;
}

describe("combinations that the standard rules out", () => {
  it.each([
    ["steal with ifAvailable", { steal: true, ifAvailable: true }],
    ["steal of a shared lock", { steal: true, mode: "shared" }],
    ["signal with steal", { steal: true, signal }],
    ["signal with ifAvailable", { ifAvailable: true, signal }],
    ["a signal that is aborted already with steal", { steal: true, signal: AbortSignal.abort() }],
    ["wait with ifAvailable", { ifAvailable: true, wait: 5 }],
    ["steal with reentrant", { steal: true, reentrant: true }],
  ])("reject with NotSupportedError: %s", async (_what, options) => {
    const error = await refusal((locks) => locks.request("a", options, nothing));
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toHaveProperty("name", "NotSupportedError");
  });

  it("reject for sets, too", async () => {
    const error = await refusal((locks) => locks.request(["a", "b"], { steal: true, signal }, nothing));
    expect(error).toHaveProperty("name", "NotSupportedError");
  });

  it("a name that starts with - rejects with NotSupportedError", async () => {
    expect(await refusal((locks) => locks.request("-a", nothing))).toHaveProperty(
      "name",
      "NotSupportedError",
    );
  });
});

describe("bad arguments", () => {
  it.each<[string, readonly unknown[]]>([
    ["no argument", []],
    ["no callback", ["a"]],
    ["options without a callback", ["a", {}]],
    ["null as the callback", ["a", null]],
    ["a callback that is no function", ["a", {}, {}]],
    ["a text as options", ["a", "exclusive", nothing]],
    ["a number as options", ["a", 1, nothing]],
    ["an array as options", ["a", [], nothing]],
    ["a callback as options", ["a", nothing, nothing]],
    ["an unknown mode", ["a", { mode: "foo" }, nothing]],
    ["null as mode", ["a", { mode: null }, nothing]],
    ["a bigint as mode", ["a", { mode: 1n }, nothing]],
    ["a mode that contains itself", ["a", { mode: circular() }, nothing]],
    ["a signal that is none", ["a", { signal: "abort" }, nothing]],
    ["null as signal", ["a", { signal: null }, nothing]],
    ["an object like a signal", ["a", { signal: { aborted: false } }, nothing]],
    ["steal that is no boolean", ["a", { steal: "yes" }, nothing]],
    ["ifAvailable that is no boolean", ["a", { ifAvailable: 1 }, nothing]],
    ["reentrant that is no boolean", ["a", { reentrant: "no" }, nothing]],
    ["renew that is no boolean", ["a", { renew: 0 }, nothing]],
    ["ttl 0", ["a", { ttl: 0 }, nothing]],
    ["a negative ttl", ["a", { ttl: -1 }, nothing]],
    ["ttl NaN", ["a", { ttl: Number.NaN }, nothing]],
    ["an endless ttl", ["a", { ttl: Number.POSITIVE_INFINITY }, nothing]],
    ["null as ttl", ["a", { ttl: null }, nothing]],
    ["a negative wait", ["a", { wait: -1 }, nothing]],
    ["maxHold 0", ["a", { maxHold: 0 }, nothing]],
    ["metadata that is no text", ["a", { metadata: {} }, nothing]],
    ["metadata that is too long", ["a", { metadata: "x".repeat(4097) }, nothing]],
    ["an option that does not exist", ["a", { timeout: 5 }, nothing]],
    ["an option of a semaphore", ["a", { weight: 2 }, nothing]],
    ["no name", [[], nothing]],
    ["an empty name", ["", nothing]],
    ["a number as name", [7, nothing]],
  ])("reject with a TypeError that is LOCK_INVALID: %s", async (_what, args) => {
    const error = await refusal((locks) => locks.request(...args));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toBeInstanceOf(LockError);
    expect(error).toHaveProperty("code", "LOCK_INVALID");
  });

  it("say which options there are", async () => {
    expect(await refusal((locks) => locks.request("a", { timeout: 5 }, nothing))).toHaveProperty(
      "message",
      'there is no option "timeout" here; there are ttl, renew, maxHold, metadata, mode, ifAvailable, steal, ' +
        "signal, wait, reentrant",
    );
  });

  it.each<[string, (locks: Untyped) => Promise<unknown>]>([
    ["acquire with ifAvailable", (locks) => locks.acquire("a", { ifAvailable: true })],
    ["acquire with reentrant", (locks) => locks.acquire("a", { reentrant: true })],
    ["acquire without a name", (locks) => locks.acquire()],
    ["tryAcquire with wait", (locks) => locks.tryAcquire("a", { wait: 5 })],
    ["tryAcquire with signal", (locks) => locks.tryAcquire("a", { signal })],
    ["tryAcquire with steal", (locks) => locks.tryAcquire("a", { steal: true })],
    ["a semaphore's acquire with mode", (locks) => locks.semaphore("s", 1).acquire({ mode: "shared" })],
    [
      "a semaphore's request with steal",
      (locks) => locks.semaphore("s", 1).request({ steal: true }, nothing),
    ],
    ["a semaphore's tryAcquire with wait", (locks) => locks.semaphore("s", 1).tryAcquire({ wait: 1 })],
    ["a semaphore's weight 0", (locks) => locks.semaphore("s", 1).acquire({ weight: 0 })],
    ["a semaphore's weight as text", (locks) => locks.semaphore("s", 1).acquire({ weight: "1" })],
    ["a semaphore without a callback", (locks) => locks.semaphore("s", 1).request()],
    ["a prefix that is no text", (locks) => locks.query({ prefix: 5 })],
    ["a query with an option that does not exist", (locks) => locks.query({ name: "a" })],
  ])("of the other calls are refused as well: %s", async (_what, call) => {
    expect(await refusal(call)).toMatchObject({ name: "TypeError", code: "LOCK_INVALID" });
  });

  it("never throw: the promise rejects", async () => {
    const { locks } = rig();
    const calls: (() => Promise<unknown>)[] = [
      () => untyped(locks).request(),
      () => untyped(locks).acquire(),
      () => untyped(locks).tryAcquire(),
      () => untyped(locks).semaphore("s", 1).request(),
    ];
    for (const call of calls) await rejection(call());
  });

  it.each([[{ ttl: 0 }], [{ ttl: "soon" }], [{ reentrant: 1 }]])(
    "as defaults of the manager are refused when it is made: %o",
    (options) => {
      expect(() => Reflect.apply(rig, undefined, [options])).toThrow(TypeError);
    },
  );
});

describe("arguments that are allowed", () => {
  it.each<[string, readonly unknown[]]>([
    ["no options", ["a", nothing]],
    ["undefined as options", ["a", undefined, nothing]],
    ["null as options", ["a", null, nothing]],
    ["undefined after the callback", ["a", nothing, undefined]],
    ["options that are undefined", ["a", { mode: undefined, ttl: undefined, signal: undefined }, nothing]],
    ["an object without a prototype", ["a", Object.assign(Object.create(null), { mode: "shared" }), nothing]],
    ["a list of one name", [["a"], nothing]],
    ["steal: false with signal", ["a", { steal: false, signal }, nothing]],
    ["ifAvailable: false with wait", ["a", { ifAvailable: false, wait: 5 }, nothing]],
  ])("are %s", async (_what, args) => {
    const { locks } = rig();
    await expect(untyped(locks).request(...args)).resolves.toBeUndefined();
  });

  it("are read once each, in the order of the alphabet, as the standard reads a dictionary", async () => {
    const read: string[] = [];
    const values = {
      wait: 5,
      ttl: "1s",
      steal: false,
      signal,
      renew: true,
      reentrant: false,
      mode: "shared",
      metadata: "text",
      maxHold: "1h",
      ifAvailable: false,
    };
    const options = new Proxy(values, {
      get: (target, key, self) => {
        read.push(String(key));
        return Reflect.get(target, key, self);
      },
    });
    const { locks } = rig();
    await untyped(locks).request("a", options, nothing);
    // One that only a semaphore takes was asked for, too, and is not there.
    expect(read).toEqual([...Object.keys(values), "weight"].toSorted());
  });

  it("take their defaults from the manager", async () => {
    const { locks, entries } = rig({ ttl: "5s" });
    await locks.acquire("a");
    await locks.acquire("b", { ttl: "7s" });
    const [a, b] = [await entries("a"), await entries("b")];
    expect([a[0]?.expiresInMs, b[0]?.expiresInMs]).toEqual([5_000, 7_000]);
  });

  it("give a ttl of 30 s when nothing is said", async () => {
    const { locks, entries } = rig();
    await locks.acquire("a");
    expect((await entries("a"))[0]?.expiresInMs).toBe(30_000);
  });
});

function circular(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}
