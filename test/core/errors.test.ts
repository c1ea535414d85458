/** The one error class: its brand, its codes, and what else the core throws. */
import { describe, expect, it, vi } from "vitest";
import { asLockError, invalid, LockError, lockErrorCodes, notSupported } from "../../src/core/errors.ts";

describe("LockError", () => {
  it("says which lock, which backend and why", () => {
    const cause = new Error("driver");
    const error = new LockError("LOCK_LOST", "gone", { lock: "a", backend: "memory", cause });
    expect(error).toMatchObject({
      name: "LockError",
      code: "LOCK_LOST",
      lock: "a",
      backend: "memory",
      cause,
      message: "gone",
      retryable: false,
    });
    expect(error).toBeInstanceOf(Error);
  });

  it("has no cause unless one was given", () => {
    expect(new LockError("LOCK_LOST", "gone")).not.toHaveProperty("cause");
  });

  it("is recognised by another copy of the package", async () => {
    vi.resetModules();
    const copy = await import("../../src/core/errors.ts");
    expect(copy.LockError).not.toBe(LockError);
    const theirs: unknown = new copy.LockError("LOCK_TIMEOUT", "busy");
    expect(theirs).toBeInstanceOf(LockError);
    expect(theirs).toHaveProperty("code", "LOCK_TIMEOUT");
  });

  it.each([
    [null],
    [undefined],
    ["LOCK_LOST"],
    [{}],
    [new Error("x")],
    [{ name: "LockError", code: "LOCK_LOST" }],
  ])("is not %o", (value) => {
    expect(value instanceof LockError).toBe(false);
  });

  it("does not show its brand in listings of its properties", () => {
    const error = new LockError("LOCK_LOST", "gone");
    const brand = Object.getOwnPropertyDescriptor(error, Symbol.for("holdfast.LockError"));
    expect(brand).toMatchObject({ value: true, enumerable: false });
  });

  it.each([
    ["LOCK_TIMEOUT", true],
    ["LOCK_ABORTED", false],
    ["LOCK_LOST", false],
    ["LOCK_OUTCOME_UNKNOWN", true],
    ["LOCK_UNAVAILABLE", true],
    ["LOCK_UNSUPPORTED", false],
    ["LOCK_STALE_TOKEN", false],
    ["LOCK_INVALID", false],
    ["LOCK_CLOSED", false],
  ] as const)("%s is retryable: %s", (code, retryable) => {
    expect(new LockError(code, "text").retryable).toBe(retryable);
  });

  it("has no code that this table does not name", () => {
    expect(Object.keys(lockErrorCodes)).toHaveLength(9);
  });
});

describe("bad input", () => {
  it("is a TypeError and a LockError with code LOCK_INVALID", () => {
    const error: unknown = invalid("not this", { lock: "a" });
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toBeInstanceOf(LockError);
    expect(error).toMatchObject({ name: "TypeError", code: "LOCK_INVALID", lock: "a", retryable: false });
  });
});

describe("a combination that the standard rules out", () => {
  it("is a DOMException, not a LockError", () => {
    const error: unknown = notSupported("not both");
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toHaveProperty("name", "NotSupportedError");
    expect(error instanceof LockError).toBe(false);
  });
});

describe("an error of a backend", () => {
  it("stays what it is when it is a LockError", () => {
    const error = new LockError("LOCK_UNAVAILABLE", "down");
    expect(asLockError(error, "the call", {})).toBe(error);
  });

  it.each([[new Error("reset")], ["reset"]])("is an unknown outcome when it is foreign: %o", (cause) => {
    const error = asLockError(cause, "the release", { lock: "a", backend: "redis" });
    expect(error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN", cause, lock: "a", backend: "redis" });
    expect(error.message).toBe("the release failed on redis, and it may or may not have happened: reset");
  });
});
