/** The manual clock itself: a clock that lies would make every other test worthless. */
import { describe, expect, it } from "vitest";
import { ManualClock } from "../../src/testing/manual-clock.ts";

describe("the manual clock", () => {
  it("runs timers at their moments, those of one moment in the order in which they were set", async () => {
    const clock = new ManualClock();
    const seen: string[] = [];
    clock.after(20, () => seen.push(`b@${clock.now()}`));
    clock.after(10, () => seen.push(`a@${clock.now()}`));
    clock.after(20, () => seen.push(`c@${clock.now()}`));
    await clock.advance(100);
    expect(seen).toEqual(["a@10", "b@20", "c@20"]);
  });

  it("runs a timer that a blocked loop made late at the moment at which the block ended, never back in time", async () => {
    const clock = new ManualClock();
    const seen: number[] = [];
    clock.after(10, () => seen.push(clock.now()));
    clock.block(50);
    await clock.advance(0);
    expect(seen).toEqual([50]);
    expect(clock.now()).toBe(50);
  });

  it("runs timers that a timer sets, if they are due within the advance", async () => {
    const clock = new ManualClock();
    const seen: number[] = [];
    clock.after(10, () => clock.after(10, () => seen.push(clock.now())));
    await clock.advance(20);
    expect(seen).toEqual([20]);
  });

  it("counts a step of the wall clock forward as time that has passed, and one back as none", () => {
    const clock = new ManualClock();
    clock.stepWall(-5_000);
    expect(clock.now()).toBe(0);
    clock.stepWall(60_000);
    expect(clock.now()).toBe(60_000);
  });

  it("does not run a timer that was cancelled", async () => {
    const clock = new ManualClock();
    let fired = 0;
    clock.after(10, () => fired++).cancel();
    await clock.advance(100);
    expect([fired, clock.timers]).toEqual([0, 0]);
  });
});
