/** Durations as callers write them. */
import { describe, expect, it } from "vitest";
import { durationMs, showMs } from "../../src/core/duration.ts";

const ttl = { option: "ttl", leastMs: 1 };
const wait = { option: "wait", leastMs: 0, forEver: true };

describe("a duration", () => {
  it.each([
    [1, 1],
    [0.5 + 1, 1.5],
    [30_000, 30_000],
    ["250ms", 250],
    ["30s", 30_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["366d", 31_622_400_000],
  ])("takes %j as %d ms", (value, ms) => {
    expect(durationMs(value, ttl)).toBe(ms);
  });

  it("may be Infinity, or 0, where the option allows it", () => {
    expect(durationMs(Number.POSITIVE_INFINITY, wait)).toBe(Number.POSITIVE_INFINITY);
    expect(durationMs(0, wait)).toBe(0);
  });

  it.each([
    [0],
    [0.5],
    [-1],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    ["0s"],
    ["-5s"],
    [""],
    ["30"],
    ["30 s"],
    [" 30s"],
    ["30S"],
    ["1e3ms"],
    ["Infinity"],
    ["367d"],
    ["1h30m"],
    [".5s"],
    [null],
    [true],
    [30n],
    [{}],
    [Object.create(null)],
    [[30_000]],
    [Symbol("30s")],
    [new Date(30_000)],
  ])("refuses %o", (value) => {
    expect(() => durationMs(value, ttl)).toThrow(
      expect.objectContaining({ name: "TypeError", code: "LOCK_INVALID" }),
    );
  });

  it("says in the refusal what was given and what is allowed", () => {
    expect(() => durationMs("soon", ttl)).toThrow(
      'ttl is "soon": give milliseconds or text such as "30s" (units ms, s, m, h, d), ' +
        "at least 1 ms and at most 366 days",
    );
    expect(() => durationMs("5000", { option: "--wait", leastMs: 0 })).toThrow(
      /^--wait is "5000": give a number with a unit such as "30s"/,
    );
    expect(() => durationMs(-1, wait)).toThrow(/wait is -1: .* at least 0 ms .*, or Infinity$/);
  });

  it.each([
    [250, "250ms"],
    [1.23456, "1.235ms"],
    [1_000, "1s"],
    [90_000, "90s"],
    [120_000, "2m"],
    [7_200_000, "2h"],
    [86_400_000, "1d"],
    [0, "0ms"],
  ])("of %d ms is shown as %s", (ms, shown) => {
    expect(showMs(ms)).toBe(shown);
  });
});
