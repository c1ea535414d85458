/** The agenda against a plain sorted list, and its one timer. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Agenda, type Due } from "../../src/core/agenda.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

interface Item extends Due<Item> {
  readonly label: number;
}

const item = (label: number): Item => ({ label, moment: null, earlier: null, later: null });

const byMoment = (a: [number, number], b: [number, number]): number => a[0] - b[0] || a[1] - b[1];

type Step =
  | { readonly kind: "set"; readonly label: number; readonly inMs: number }
  | { readonly kind: "remove"; readonly label: number }
  | { readonly kind: "advance"; readonly ms: number };

const label = fc.nat({ max: 11 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), label, inMs: fc.nat({ max: 3_000 }) }),
  fc.record({ kind: fc.constant("remove" as const), label }),
  fc.record({ kind: fc.constant("advance" as const), ms: fc.nat({ max: 1_500 }) }),
);

describe("agenda", () => {
  it("calls back for the same items at the same moments as a sorted list", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const clock = new ManualClock();
        const items = Array.from({ length: 12 }, (_, index) => item(index));
        const seen: [number, number][] = [];
        const agenda = new Agenda<Item>(clock, (due, now) => {
          for (const each of due) seen.push([now, each.label]);
        });
        const expected: [number, number][] = [];
        const list = new Map<number, number>();
        for (const each of steps) {
          const now = clock.now();
          if (each.kind === "set") {
            const target = items[each.label];
            if (target !== undefined) agenda.set(target, now + each.inMs);
            list.set(each.label, now + each.inMs);
          } else if (each.kind === "remove") {
            const target = items[each.label];
            if (target !== undefined) agenda.remove(target);
            list.delete(each.label);
          } else {
            await clock.advance(each.ms);
            const until = now + each.ms;
            const due = [...list].filter(([, at]) => at <= until).toSorted((a, b) => a[1] - b[1]);
            for (const [which, at] of due) {
              list.delete(which);
              expected.push([at, which]);
            }
          }
        }
        expect(seen.toSorted(byMoment)).toEqual(expected.toSorted(byMoment));
        expect(seen.map(([at]) => at)).toEqual(seen.map(([at]) => at).toSorted((a, b) => a - b));
        expect(
          agenda
            .items()
            .map((each) => each.label)
            .toSorted((a, b) => a - b),
        ).toEqual([...list.keys()].toSorted((a, b) => a - b));
      }),
      { numRuns: 200 },
    );
  });

  it("hands over all that is due at once, earliest first", () => {
    const clock = new ManualClock();
    const batches: number[][] = [];
    const agenda = new Agenda<Item>(clock, (due) => batches.push(due.map((each) => each.label)));
    for (const [index, inMs] of [30, 10, 20].entries()) agenda.set(item(index), inMs);
    clock.block(50);
    return clock.advance(0).then(() => expect(batches).toEqual([[1, 2, 0]]));
  });

  it("has taken an item off by the time it calls back, so that it can be put on again", async () => {
    const clock = new ManualClock();
    const moments: number[] = [];
    const again = item(0);
    const agenda = new Agenda<Item>(clock, ([due], now) => {
      moments.push(now);
      if (due !== undefined && moments.length < 3) agenda.set(due, now + 10);
    });
    agenda.set(again, 10);
    await clock.advance(100);
    expect(moments).toEqual([10, 20, 30]);
  });

  it("has one timer, however many items it has", () => {
    const clock = new ManualClock();
    const agenda = new Agenda<Item>(clock, () => {});
    for (let index = 0; index < 100; index++) agenda.set(item(index), 1_000 - index);
    expect(clock.timers).toBe(1);
  });

  it("looks at least once a second, so that a suspended machine learns soon that a moment has passed", async () => {
    const clock = new ManualClock();
    const moments: number[] = [];
    const agenda = new Agenda<Item>(clock, (_due, now) => moments.push(now));
    agenda.set(item(0), 3_600_000);
    clock.stepWall(3_600_000);
    await clock.advance(1_000);
    expect(moments).toEqual([3_601_000]);
  });

  it("has no timer when nothing is on it", async () => {
    const clock = new ManualClock();
    const agenda = new Agenda<Item>(clock, () => {});
    agenda.set(item(0), 10);
    await clock.advance(10);
    expect(clock.timers).toBe(0);
  });

  it("forgets all and cancels its timer when cleared", async () => {
    const clock = new ManualClock();
    const seen: Item[] = [];
    const agenda = new Agenda<Item>(clock, (due) => seen.push(...due));
    const one = item(0);
    agenda.set(one, 10);
    agenda.clear();
    expect([clock.timers, one.moment]).toEqual([0, null]);
    await clock.advance(100);
    expect(seen).toEqual([]);
  });

  it("takes the removal of an item that is not on it", () => {
    const agenda = new Agenda<Item>(new ManualClock(), () => {});
    agenda.remove(item(0));
    expect(agenda.items()).toEqual([]);
  });
});
