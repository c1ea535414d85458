/** Backends that wake the wrong waiters, or none, or with a wrong word; and clients that do not close. */
import type { Entry, Snapshot } from "../../core/backend.ts";
import { nothingAhead } from "../../core/grant.ts";
import { after, type Broken, brokenBy, viewed } from "./broken.ts";

const nothing = (): void => {};

/** Broken watches and broken closing. */
export const brokenWatching: readonly Broken[] = [
  brokenBy("wake-ups are lost", () => () => ({ watch: () => nothing })),

  brokenBy("wake-ups of those who wait for permits are lost", () => (inner) => ({
    watch: (queue, self, target, onChange) =>
      target === null ? nothing : inner.watch(queue, self, target, onChange),
  })),

  brokenBy("only the first of several watchers is woken", () => {
    const targets = new Set<string>();
    return (inner) => ({
      watch: (queue, self, target, onChange) => {
        if (target === null) return inner.watch(queue, self, target, onChange);
        if (targets.has(target.id)) return nothing;
        targets.add(target.id);
        return after(inner.watch(queue, self, target, onChange), (unwatch) => () => {
          targets.delete(target.id);
          unwatch();
        });
      },
    });
  }),

  brokenBy("what has left before the watch stood is not reported", () => (inner) => ({
    watch: async (queue, self, target, onChange) => {
      let standing = false;
      const unwatch = await inner.watch(queue, self, target, (fresh) => {
        if (standing) onChange(fresh);
      });
      standing = true;
      return unwatch;
    },
  })),

  brokenBy("who was told once is told no more", () => {
    const told = new Set<string>();
    return (inner) => ({
      watch: (queue, self, target, onChange) => {
        if (told.has(self.id)) return nothing;
        return inner.watch(queue, self, target, (fresh) => {
          told.add(self.id);
          onChange(fresh);
        });
      },
    });
  }),

  brokenBy("an eviction wakes nobody", () => {
    const evicted = new Set<string>();
    return (inner) => ({
      remove: (queue, id, evict = false, seq) => {
        if (evict) evicted.add(id);
        return inner.remove(queue, id, evict, seq);
      },
      watch: (queue, self, target, onChange) =>
        inner.watch(queue, self, target, (fresh) => {
          if (target === null || !evicted.has(target.id)) onChange(fresh);
        }),
    });
  }),

  brokenBy("everybody is woken", () => {
    const watchers = new Map<string, Set<(fresh?: Snapshot) => void>>();
    return (inner) => ({
      remove: async (queue, id, evict, seq) => {
        const removed = await inner.remove(queue, id, evict, seq);
        for (const wake of watchers.get(queue) ?? []) wake();
        return removed;
      },
      watch: (queue, self, target, onChange) => {
        const waiting = watchers.get(queue) ?? new Set();
        watchers.set(queue, waiting.add(onChange));
        return after(inner.watch(queue, self, target, onChange), (unwatch) => () => {
          waiting.delete(onChange);
          unwatch();
        });
      },
    });
  }),

  brokenBy("a watch that was ended is still called", () => (inner) => ({
    watch: (queue, self, target, onChange) =>
      after(inner.watch(queue, self, target, onChange), () => nothing),
  })),

  brokenBy("a wake-up says first, whoever is ahead", () => (inner) => ({
    watch: (queue, self, target, onChange) =>
      inner.watch(queue, self, target, () => onChange({ self, ahead: nothingAhead })),
  })),

  brokenBy("a watch fires before the other has left, and says first", () => (inner) => ({
    watch: (queue, self, target, onChange) => {
      onChange({ self, ahead: nothingAhead });
      return inner.watch(queue, self, target, onChange);
    },
  })),

  brokenBy("a dead waiter is told what was ahead of it", () => {
    const dead = new Map<string, Entry>();
    return (inner) => ({
      append: async (queue, entry) => {
        const said = await inner.append(queue, entry);
        if (said !== null) dead.set(entry.id, viewed(said.self));
        return said;
      },
      watch: (queue, self, target, onChange) =>
        inner.watch(queue, self, target, (fresh) =>
          onChange(fresh ?? { self: dead.get(self.id) ?? self, ahead: nothingAhead }),
        ),
    });
  }),

  brokenBy("close leaves a timer", (clock) => (inner) => ({
    close: async () => {
      await inner.close();
      clock.after(10 ** 9, nothing);
    },
  })),

  brokenBy("close does not close", () => () => ({ close: async () => {} })),

  brokenBy("close rejects the second time", () => (inner) => {
    let closed = false;
    return {
      close: async () => {
        if (closed) throw new Error("closed already");
        closed = true;
        await inner.close();
      },
    };
  }),

  brokenBy("close takes the client's entries along", () => (inner) => {
    const own: Array<{ queue: string; id: string }> = [];
    return {
      append: (queue, entry) => {
        own.push({ queue, id: entry.id });
        return inner.append(queue, entry);
      },
      close: async () => {
        for (const { queue, id } of own.splice(0)) await inner.remove(queue, id);
        await inner.close();
      },
    };
  }),

  brokenBy("close of one client ends the watches of all", () => {
    let closed = 0;
    return (inner) => ({
      watch: (queue, self, target, onChange) =>
        inner.watch(queue, self, target, (fresh) => {
          if (closed === 0) onChange(fresh);
        }),
      close: async () => {
        closed += 1;
        await inner.close();
      },
    });
  }),

  brokenBy("watches outlive their client", () => {
    const later: Array<() => void> = [];
    return (inner) => ({
      remove: (queue, id, evict, seq) =>
        after(inner.remove(queue, id, evict, seq), (removed) => {
          for (const wake of later.splice(0)) wake();
          return removed;
        }),
      watch: (queue, self, target, onChange) => {
        let woken = false;
        const once = (fresh?: Snapshot): void => {
          if (woken) return;
          woken = true;
          onChange(fresh);
        };
        return after(inner.watch(queue, self, target, once), (unwatch) => {
          later.push(() => once());
          return unwatch;
        });
      },
    });
  }),
];
