/** Backends whose queues are out of order, or whose answers about them are wrong. */
import type { Ahead, Entry, NewEntry, Snapshot } from "../../core/backend.ts";
import { nothingAhead } from "../../core/grant.ts";
import { settle } from "../manual-clock.ts";
import { type Broken, brokenBy, showing, snapshotIn, viewed } from "./broken.ts";

/** Shows snapshots with something wrong in what is ahead. */
function misjudging(name: string, wrong: (ahead: Ahead, self: Entry) => Ahead): Broken {
  const snapshotAs = ({ self, ahead }: Snapshot): Snapshot => ({ self, ahead: wrong(ahead, self) });
  return brokenBy(name, () => (inner) => showing(inner, (entry) => entry, snapshotAs));
}

/** Broken order and broken snapshots. */
export const brokenOrder: readonly Broken[] = [
  brokenBy("late commit: an entry becomes visible after those behind it", () => {
    const hidden = new Map<string, number>();
    let appends = 0;
    return (inner) => {
      const visible = async (queue: string, own?: string): Promise<readonly Entry[]> =>
        (await inner.list(queue)).filter(({ id }) => id === own || (hidden.get(id) ?? 0) <= appends);
      return {
        append: async (queue, entry) => {
          appends += 1;
          if (appends % 4 === 0 && !hidden.has(entry.id)) hidden.set(entry.id, appends + 2);
          const said = await inner.append(queue, entry);
          return said && snapshotIn(await visible(queue, entry.id), viewed(said.self));
        },
        list: (queue) => visible(queue),
      };
    };
  }),

  brokenBy("last come, first listed", () => (inner) => ({
    list: async (queue) => (await inner.list(queue)).toReversed(),
  })),

  brokenBy("calls of one client overtake each other", () => (inner) => {
    let calls = 0;
    return {
      append: async (queue, entry) => {
        calls += 1;
        for (let turn = 0; turn < calls % 3; turn++) await Promise.resolve();
        return inner.append(queue, entry);
      },
    };
  }),

  brokenBy("an append is answered before it happens", () => (inner) => {
    const appendLater = async (queue: string, entry: NewEntry): Promise<void> => {
      for (let turn = 0; turn < 3; turn++) await settle();
      await inner.append(queue, entry);
    };
    return {
      append: async (queue, entry) => {
        const early = { ...entry, id: `${entry.id}?` };
        const said = await inner.append(queue, early);
        if (said === null) return null;
        const snapshot = { self: viewed(said.self, { id: entry.id }), ahead: { ...said.ahead } };
        await inner.remove(queue, early.id);
        appendLater(queue, entry).catch(() => {});
        return snapshot;
      },
    };
  }),

  brokenBy("not monotone: entries behind count as ahead", () => (inner) => ({
    append: async (queue, entry) => {
      const said = await inner.append(queue, entry);
      if (said === null || entry.onlyIfGranted === true) return said;
      const self = viewed(said.self);
      const others = (await inner.list(queue)).filter(({ id }) => id !== entry.id);
      return snapshotIn(others, self);
    },
  })),

  misjudging("counts nobody ahead", (ahead) => ({ ...ahead, count: 0 })),
  misjudging("takes the count for the weight", (ahead) => ({ ...ahead, weight: ahead.count })),
  misjudging("takes the nearest for the nearest writer", (ahead) => ({
    ...ahead,
    nearestWriter: ahead.nearest,
  })),
  misjudging("sees a writer ahead only if it is the nearest", (ahead) => ({
    ...ahead,
    nearestWriter: ahead.nearest?.mode === "write" ? ahead.nearest : null,
  })),
  misjudging("grants what its own client has already", (ahead, self) =>
    ahead.nearest?.owner.client === self.owner.client ? nothingAhead : ahead,
  ),

  brokenBy("takes the first for the nearest", () => (inner) => ({
    append: async (queue, entry) => {
      const said = await inner.append(queue, entry);
      const [first = null] = await inner.list(queue);
      if (said === null || said.ahead.nearest === null) return said;
      return { self: viewed(said.self), ahead: { ...said.ahead, nearest: first } };
    },
  })),

  brokenBy("sees somebody ahead of a free lock", () => (inner) => ({
    append: async (queue, entry) => {
      const said = await inner.append(queue, entry);
      return said && { self: said.self, ahead: { ...said.ahead, count: said.ahead.count + 1 } };
    },
  })),
];
