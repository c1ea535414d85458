/** One listener a signal, however many listen. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { onAbort } from "../../src/core/aborts.ts";

describe("listening to a signal", () => {
  it("adds one listener for all, and tells them in the order in which they came", () => {
    const controller = new AbortController();
    const seen: number[] = [];
    for (let index = 0; index < 5; index++) onAbort(controller.signal, () => seen.push(index));
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    controller.abort();
    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  it("leaves no listener when the last one has ended", () => {
    const { signal } = new AbortController();
    const ends = [onAbort(signal, () => {}), onAbort(signal, () => {})];
    ends[0]?.();
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    ends[1]?.();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("does not call one that ended while the others were told", () => {
    const controller = new AbortController();
    const seen: string[] = [];
    const ends: (() => void)[] = [];
    onAbort(controller.signal, () => {
      seen.push("first");
      ends[0]?.();
    });
    ends.push(onAbort(controller.signal, () => seen.push("second")));
    controller.abort();
    expect(seen).toEqual(["first"]);
  });

  it("ends twice without harm to those who came later", () => {
    const controller = new AbortController();
    const end = onAbort(controller.signal, () => {});
    end();
    const seen: string[] = [];
    onAbort(controller.signal, () => seen.push("later"));
    end();
    controller.abort();
    expect(seen).toEqual(["later"]);
  });
});
