/** One listener a signal, however many listen. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { follow, onAbort } from "../../src/core/aborts.ts";

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

describe("following signals", () => {
  it("aborts with the first of them, and with its reason", () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const { signal } = follow([one.signal, two.signal]);
    expect(signal.aborted).toBe(false);
    two.abort("second");
    one.abort("first");
    expect([signal.aborted, signal.reason]).toEqual([true, "second"]);
  });

  it("aborts at once where one of them has aborted already", () => {
    const { signal } = follow([new AbortController().signal, AbortSignal.abort("before")]);
    expect([signal.aborted, signal.reason]).toEqual([true, "before"]);
  });

  it("leaves nothing at them when it is ended, and does not abort any more", () => {
    const controller = new AbortController();
    const { signal, end } = follow([controller.signal]);
    end();
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    controller.abort();
    expect(signal.aborted).toBe(false);
  });
});
