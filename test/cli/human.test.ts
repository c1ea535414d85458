/** Durations, widths and text that cannot play tricks. */
import { describe, expect, it } from "vitest";
import { cut, human, printable, widthOf } from "../../src/cli/human.ts";

describe("human", () => {
  it.each([
    [-5, "0s"],
    [0, "0s"],
    [449, "0.4s"],
    [999, "0.9s"],
    [1_000, "1s"],
    [59_999, "59s"],
    [60_000, "1m00s"],
    [200_000, "3m20s"],
    [3_600_000, "1h00m"],
    [7_500_000, "2h05m"],
    [86_400_000, "1d00h"],
    [360_000_000, "4d04h"],
  ])("%d ms is %s", (ms, shown) => {
    expect(human(ms)).toBe(shown);
  });
});

describe("printable", () => {
  it("writes what a terminal would obey as an escape", () => {
    expect(printable("a\u001b[31mb\nc\u202ed\u200be")).toBe("a\\x1b[31mb\\x0ac\\u{202e}d\\u{200b}e");
  });

  it("leaves letters of all kinds alone", () => {
    expect(printable("Größe 数 🔒 x")).toBe("Größe 数 🔒 x");
  });
});

describe("widthOf and cut", () => {
  it.each([
    ["abc", 3],
    ["数字", 4],
    ["e\u0301", 1],
    ["🔒", 2],
    ["", 0],
  ])("%s takes %d cells", (text, width) => {
    expect(widthOf(text)).toBe(width);
  });

  it("cuts to the width, with a mark", () => {
    expect(cut("abcdef", 6)).toBe("abcdef");
    expect(cut("abcdef", 4)).toBe("abc…");
    expect(cut("数数数", 4)).toBe("数…");
    expect(cut("abc", 1)).toBe("…");
    expect(cut("abc", 0)).toBe("");
  });
});
