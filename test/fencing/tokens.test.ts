/** Tokens and sequencers as text, the rule, and which holders have a token that can be fenced. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/connect.ts";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import type { Backend } from "../../src/core/backend.ts";
import { LockError } from "../../src/core/errors.ts";
import {
  checkSequencer,
  formatSequencer,
  highestToken,
  isSequencerHeld,
  isStale,
  memoryGuard,
  parseSequencer,
  parseToken,
  type Sequencer,
} from "../../src/fencing/index.ts";
import { tokenOf } from "../../src/fencing/token.ts";

const tokens = fc.bigInt({ min: 0n, max: highestToken });
const modes = fc.constantFrom("exclusive" as const, "shared" as const);
/** Names that locks can have, with many colons and words of the form in them. */
const names = fc
  .array(
    fc.oneof(
      fc.constantFrom(":", "exclusive", ":shared:", "7", "-", " ", "\n"),
      fc.string({ unit: "grapheme", maxLength: 8 }),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => parts.join(""))
  .filter((name) => name !== "" && !name.startsWith("-") && !name.includes("\0") && name.isWellFormed());

describe("a token as text", () => {
  it("comes back as it was", () => {
    fc.assert(fc.property(tokens, (token) => parseToken(String(token)) === token));
  });

  it.each([
    "",
    "-1",
    "+1",
    "01",
    "00",
    " 1",
    "1 ",
    "1\n",
    "1e3",
    "0x10",
    "1.0",
    "1_000",
    "1n",
    "１２",
    "9223372036854775808",
    "10000000000000000000",
    "9".repeat(1_000_000),
    "1, 2",
    "NaN",
    "Infinity",
  ])("%j is refused", (text) => {
    expect(() => parseToken(text)).toThrow(TypeError);
    expect(() => parseToken(text)).toThrow(LockError);
  });

  it.each([[7], [7n], [null], [undefined], [["7"]], [{}]])("%s is no text", (value) => {
    expect(() => parseToken(value)).toThrow(/decimal text/);
  });

  it("takes nothing but what it would give", () => {
    const any = fc.oneof(fc.string(), fc.stringMatching(/^[-+ 0]?\d{1,21}\s?$/));
    fc.assert(
      fc.property(any, (text) => {
        let token: bigint;
        try {
          token = parseToken(text);
        } catch (error) {
          return error instanceof LockError && error.code === "LOCK_INVALID";
        }
        return String(token) === text && token <= highestToken;
      }),
    );
  });
});

it("the rule: older than the highest is stale, equal and newer are not", () => {
  expect(isStale(0n, null)).toBe(false);
  fc.assert(fc.property(tokens, tokens, (one, other) => isStale(one, other) === one < other));
});

describe("a sequencer", () => {
  it("comes back as it was, whatever the name", () => {
    fc.assert(
      fc.property(names, modes, tokens, (name, mode, token) => {
        expect(parseSequencer(formatSequencer({ name, mode, token }))).toEqual({ name, mode, token });
      }),
    );
  });

  it("of two locks is never the same text", () => {
    const one = fc.record({ name: names, mode: modes, token: tokens });
    fc.assert(
      fc.property(one, one, (a, b) => {
        const same = a.name === b.name && a.mode === b.mode && a.token === b.token;
        return (formatSequencer(a) === formatSequencer(b)) === same;
      }),
    );
  });

  it("is taken only in the form that it is given in", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `${text}:exclusive:7`),
        ),
        (text) => {
          let sequencer: Sequencer;
          try {
            sequencer = parseSequencer(text);
          } catch (error) {
            return error instanceof LockError && error.code === "LOCK_INVALID";
          }
          return formatSequencer(sequencer) === text;
        },
      ),
    );
  });

  it.each([
    "",
    "a",
    "a:7",
    "a:exclusive",
    "a:exclusive:",
    ":exclusive:7",
    "a:Exclusive:7",
    "a:exclusive:07",
    "-a:exclusive:7",
    "a:write:7",
    "a:exclusive:7 ",
    "a:exclusive:7\n",
  ])("%j is refused", (text) => {
    expect(() => parseSequencer(text)).toThrow(expect.objectContaining({ code: "LOCK_INVALID" }));
  });

  it("is checked for the lock, the mode and the highest token", () => {
    const text = "order:42:exclusive:34";
    expect(checkSequencer(text, { name: "order:42", highest: 34n })).toEqual({
      name: "order:42",
      mode: "exclusive",
      token: 34n,
    });
    expect(checkSequencer(text, { name: "order:42", mode: "shared" }).token).toBe(34n);
    const refused = (check: Parameters<typeof checkSequencer>[1], given: string = text): unknown => {
      try {
        return checkSequencer(given, check);
      } catch (error) {
        return error instanceof LockError ? error.code : error;
      }
    };
    expect(refused({ name: "order" })).toBe("LOCK_INVALID");
    expect(refused({ name: "order:42", highest: 35n })).toBe("LOCK_STALE_TOKEN");
    expect(refused({ name: "order:42" }, "order:42:shared:34")).toBe("LOCK_INVALID");
  });

  it.each([
    { name: "a", mode: "exclusive", token: "34" },
    { name: "a", mode: "exclusive", token: 34 },
    { name: "a", mode: "exclusive" },
    { name: "a", token: 34n },
    { name: "a", mode: "EXCLUSIVE", token: 34n },
    { name: "a", mode: "exclusive", token: -1n },
  ])("as an object is checked as its text is: %o", async (given) => {
    const sequencer: Sequencer = JSON.parse("{}");
    Object.assign(sequencer, given);
    expect(() => checkSequencer(sequencer, { name: "a", highest: 30n })).toThrow(LockError);
    await using locks = await connect(memoryBackend());
    await expect(isSequencerHeld(locks, sequencer)).rejects.toMatchObject({ code: "LOCK_INVALID" });
  });

  it("can be asked about at the store", async () => {
    await using locks = await connect(memoryBackend());
    const lock = await locks.acquire("order:42");
    const text = formatSequencer(lock);
    expect(text).toBe(`order:42:exclusive:${lock.token}`);
    expect(await isSequencerHeld(locks, text)).toBe(true);
    expect(await isSequencerHeld(locks, `order:42:shared:${lock.token}`)).toBe(false);
    expect(await isSequencerHeld(locks, `order:4:exclusive:${lock.token}`)).toBe(false);
    await lock.release();
    expect(await isSequencerHeld(locks, text)).toBe(false);
  });
});

describe("a holder", () => {
  it("is a lock, a sequencer or a token", async () => {
    await using locks = await connect(memoryBackend());
    await using lock = await locks.acquire("row");
    expect(lock.unfenced).toBe(null);
    expect(tokenOf(lock)).toEqual({ token: lock.token, lock: "row" });
    expect(tokenOf(parseSequencer("row:exclusive:7"))).toEqual({ token: 7n, lock: "row" });
    expect(tokenOf(7n)).toEqual({ token: 7n });
    const guard = memoryGuard();
    expect(await guard.write("row", lock, () => "written")).toBe("written");
    const error: unknown = await guard
      .show("row", { token: 1n, name: "row" })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "LOCK_STALE_TOKEN", lock: "row", retryable: false });
  });

  it("that holds with others at once is refused, with the reason", async () => {
    await using locks = await connect(memoryBackend());
    const guard = memoryGuard();
    await using shared = await locks.acquire("row", { mode: "shared" });
    await using permit = await locks.semaphore("row", 3).acquire();
    for (const [holder, why] of [
      [shared, /shared locks/],
      [permit, /semaphore/],
      [parseSequencer("row:shared:7"), /shared locks/],
    ] as const) {
      await expect(guard.show("row", holder)).rejects.toMatchObject({
        code: "LOCK_UNSUPPORTED",
        message: expect.stringMatching(why),
      });
    }
    expect(formatSequencer(shared)).toBe(`row:shared:${shared.token}`);
    expect(() => formatSequencer(permit)).toThrow(/semaphore/);
  });

  it("of a store without tokens is refused, with the reason", async () => {
    const inner = memoryBackend();
    const backend: Backend = {
      name: "plain",
      traits: { ...inner.traits, tokens: null },
      append: (queue, entry) => inner.append(queue, entry),
      renew: (renewals) => inner.renew(renewals),
      remove: (queue, id, evict, seq) => inner.remove(queue, id, evict, seq),
      list: (queue) => inner.list(queue),
      watch: (queue, self, target, onChange) => inner.watch(queue, self, target, onChange),
      close: () => inner.close(),
    };
    await using locks = await connect(backend);
    await using lock = await locks.acquire("row");
    expect(lock.unfenced).toMatch(/plain carry no token/);
    await expect(memoryGuard().show("row", lock)).rejects.toMatchObject({
      code: "LOCK_UNSUPPORTED",
      lock: "row",
      message: expect.stringMatching(/lock "row" cannot be fenced: the locks of plain carry no token/),
    });
  });

  it.each([
    7,
    "7",
    undefined,
    null,
    {},
    { name: "row" },
    { token: 7 },
    { token: "7" },
    -1n,
    highestToken + 1n,
  ])("%s is none", (value) => {
    const untyped: (holder: never) => unknown = tokenOf;
    expect(() => Reflect.apply(untyped, null, [value])).toThrow(LockError);
  });
});
