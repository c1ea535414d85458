/** Elapsed time from two clocks, and timers that are longer than the machine's. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { largerProgress, systemClock } from "../../src/core/clock.ts";

function clocks(): { monotonic: number; wall: number; read: () => number } {
  const both = { monotonic: 1_000, wall: 1_700_000_000_000, read: () => 0 };
  both.read = largerProgress(
    () => both.monotonic,
    () => both.wall,
  );
  return both;
}

describe("the larger progress of two clocks", () => {
  it("follows the monotonic clock while both agree", () => {
    const both = clocks();
    const start = both.read();
    both.monotonic += 5_000;
    both.wall += 5_000;
    expect(both.read() - start).toBe(5_000);
  });

  it("counts a suspension, during which only the wall clock went on", () => {
    const both = clocks();
    const start = both.read();
    both.wall += 60_000;
    expect(both.read() - start).toBe(60_000);
  });

  it("counts a suspension once", () => {
    const both = clocks();
    const start = both.read();
    both.wall += 60_000;
    both.read();
    both.read();
    both.monotonic += 1_000;
    both.wall += 1_000;
    expect(both.read() - start).toBe(61_000);
  });

  it("does not go back when the wall clock is set back", () => {
    const both = clocks();
    const start = both.read();
    both.wall -= 3_600_000;
    both.monotonic += 10;
    both.wall += 10;
    expect(both.read() - start).toBe(10);
  });

  it("counts a suspension that follows a step back", () => {
    const both = clocks();
    const start = both.read();
    both.wall -= 3_600_000;
    both.read();
    both.wall += 60_000;
    expect(both.read() - start).toBe(60_000);
  });

  it("takes small differences for rounding", () => {
    const both = clocks();
    const start = both.read();
    both.wall += 5;
    expect(both.read() - start).toBe(0);
    both.wall -= 10;
    expect(both.read() - start).toBe(0);
  });

  it("never lags more than the rounding behind a wall clock that is slewed forward", () => {
    const both = clocks();
    const start = both.read();
    const wallStart = both.wall;
    for (let second = 0; second < 2_000; second++) {
      both.monotonic += 1_000;
      both.wall += 1_000.5;
      expect(both.wall - wallStart - (both.read() - start)).toBeLessThanOrEqual(5);
    }
  });

  it("never goes back, whatever the wall clock does", () => {
    const both = clocks();
    let last = both.read();
    for (const step of [80, -80, 7_000, -9_000, 51, -51, 51, -51, 0]) {
      both.wall += step;
      const now = both.read();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });
});

describe("the system clock", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("waits for more than 2^31 ms without firing early", () => {
    vi.useFakeTimers();
    let fired = 0;
    const thirtyDays = 30 * 86_400_000;
    systemClock.after(thirtyDays, () => {
      fired += 1;
    });
    vi.advanceTimersByTime(thirtyDays - 1);
    expect(fired).toBe(0);
    vi.advanceTimersByTime(1);
    expect(fired).toBe(1);
  });

  it("cancels a timer that is past its first 2^31 ms", () => {
    vi.useFakeTimers();
    let fired = 0;
    const timer = systemClock.after(2 ** 32, () => {
      fired += 1;
    });
    vi.advanceTimersByTime(2 ** 31 + 5);
    timer.cancel();
    vi.advanceTimersByTime(2 ** 32);
    expect(fired).toBe(0);
  });

  it("takes a negative delay for none", () => {
    vi.useFakeTimers();
    let fired = 0;
    systemClock.after(-5, () => {
      fired += 1;
    });
    vi.advanceTimersByTime(1);
    expect(fired).toBe(1);
  });

  it("gives the last reading again within one turn that has many of them", async () => {
    for (let readings = 0; readings < 100; readings++) systemClock.now();
    const now = systemClock.now();
    expect(systemClock.recent()).toBe(now);
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(systemClock.recent()).toBeGreaterThan(now);
  });

  it("asks for no turn of the event loop for a few readings", async () => {
    const asked = (): number =>
      process.getActiveResourcesInfo().filter((resource) => resource === "Immediate").length;
    for (let readings = 0; readings < 100; readings++) systemClock.now();
    await new Promise((resolve) => setTimeout(resolve, 2));
    const before = asked();
    for (let readings = 0; readings < 10; readings++) systemClock.now();
    expect(asked()).toBe(before);
    for (let readings = 0; readings < 100; readings++) systemClock.now();
    expect(asked()).toBe(before + 1);
  });
});
