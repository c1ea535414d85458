/** Names and metadata: what is allowed, and what the refusal says. */
import { describe, expect, it } from "vitest";
import { checkMetadata, checkName, checkNames, nameOfQueue, semaphoreQueue } from "../../src/core/names.ts";

const invalid = expect.objectContaining({ name: "TypeError", code: "LOCK_INVALID" });

describe("a name", () => {
  it.each([
    "a",
    " ",
    "order:42",
    "*",
    "{x}",
    "/../x",
    "\u{1f512}",
    "a-b",
    "\n",
    "__proto__",
    "a".repeat(512),
  ])("may be %j", (name) => {
    expect(checkName(name)).toBe(name);
  });

  it("is measured in bytes of UTF-8", () => {
    expect(checkName("é".repeat(256))).toHaveLength(256);
    expect(() => checkName(`${"é".repeat(256)}a`)).toThrow(
      "a lock's name may have 512 bytes of UTF-8 at most, this has 513",
    );
    expect(checkName("\u{1f512}".repeat(128))).toHaveLength(256);
    expect(() => checkName("\u{1f512}".repeat(129))).toThrow(invalid);
  });

  it.each([
    ["", "a lock's name must not be empty"],
    ["a\0b", 'the name "a\\u0000b" contains a NUL character'],
    ["\ud800", "a lock's name must be well-formed Unicode, without lone surrogates"],
    ["a\udc00", "a lock's name must be well-formed Unicode, without lone surrogates"],
    ["x".repeat(513), "a lock's name may have 512 bytes of UTF-8 at most, this has 513"],
    [42, "a lock's name must be a string, not number"],
    [null, "a lock's name must be a string, not null"],
    [undefined, "a lock's name must be a string, not undefined"],
    [["a"], "a lock's name must be a string, not an array"],
    [{ toString: () => "a" }, "a lock's name must be a string, not object"],
    [Symbol("a"), "a lock's name must be a string, not symbol"],
  ])("may not be %o", (name, message) => {
    expect(() => checkName(name)).toThrow(invalid);
    expect(() => checkName(name)).toThrow(message);
  });

  it.each(["-", "-a", "-semaphore/a"])(
    "that starts with - is not supported, as in the standard: %s",
    (name) => {
      expect(() => checkName(name)).toThrow(expect.objectContaining({ name: "NotSupportedError" }));
      expect(() => checkName(name)).toThrow(DOMException);
    },
  );
});

describe("several names", () => {
  it("are sorted, each once", () => {
    expect(checkNames(["b", "a", "b", "c"])).toEqual(["a", "b", "c"]);
  });

  it("must be at least one", () => {
    expect(() => checkNames([])).toThrow("give at least one name");
  });

  it("are each checked", () => {
    expect(() => checkNames(["a", ""])).toThrow(invalid);
    // eslint-disable-next-line no-sparse-arrays
    expect(() => checkNames([, "a"])).toThrow(invalid);
    expect(() => checkNames(["a", "-b"])).toThrow(expect.objectContaining({ name: "NotSupportedError" }));
  });
});

describe("metadata", () => {
  it("may be 4096 bytes, or empty", () => {
    expect(checkMetadata("")).toBe("");
    expect(checkMetadata("x".repeat(4096))).toHaveLength(4096);
  });

  it.each([
    ["x".repeat(4097), "metadata may have 4096 bytes of UTF-8 at most, this has 4097"],
    ["é".repeat(2049), "metadata may have 4096 bytes of UTF-8 at most, this has 4098"],
    ["\ud800", "metadata must be well-formed Unicode, without lone surrogates"],
    ["a\0b", "metadata must not contain a NUL character"],
    [7, "metadata must be a string, not number"],
    [{}, "metadata must be a string, not object"],
  ])("may not be otherwise", (metadata, message) => {
    expect(() => checkMetadata(metadata)).toThrow(invalid);
    expect(() => checkMetadata(metadata)).toThrow(message);
  });
});

describe("the queue of a semaphore", () => {
  it("is another than that of the lock of the same name, and leads back to the name", () => {
    expect(semaphoreQueue("a")).not.toBe("a");
    expect(nameOfQueue(semaphoreQueue("a"))).toBe("a");
    expect(nameOfQueue("a")).toBe("a");
  });

  it("cannot be named by a caller", () => {
    expect(() => checkName(semaphoreQueue("a"))).toThrow(DOMException);
  });
});
