/** Backends that append, number, remove or renew the wrong way. */
import type { Entry, NewEntry, Snapshot } from "../../core/backend.ts";
import { after, type Broken, brokenBy, showing, viewed } from "./broken.ts";

/** Shows each seq as another one. */
function renumbering(
  name: string,
  renumber: () => (said: Snapshot, queue: string) => (seq: bigint) => bigint,
): Broken {
  return brokenBy(name, () => {
    const numberOf = renumber();
    const shown = new Map<bigint, bigint>();
    const entryAs = (entry: Entry): Entry => viewed(entry, { seq: shown.get(entry.seq) ?? entry.seq });
    return (inner) => ({
      ...showing(inner, entryAs),
      append: (queue, entry) =>
        after(inner.append(queue, entry), (said) => {
          if (said === null) return null;
          const { seq } = said.self;
          if (!shown.has(seq)) shown.set(seq, numberOf(said, queue)(seq));
          const { nearest, nearestWriter, count, weight } = said.ahead;
          const ahead = {
            count,
            weight,
            nearest: nearest && entryAs(nearest),
            nearestWriter: nearestWriter && entryAs(nearestWriter),
          };
          return { self: entryAs(said.self), ahead };
        }),
    });
  });
}

/** Broken append, seq and remove. */
export const brokenEntries: readonly Broken[] = [
  brokenBy("append is not idempotent", () => (inner) => {
    let copies = 0;
    return {
      append: async (queue, entry) => {
        const known = (await inner.list(queue)).some(({ id }) => id === entry.id);
        if (!known) return inner.append(queue, entry);
        const said = await inner.append(queue, { ...entry, id: `${entry.id}/${++copies}` });
        return said && { self: viewed(said.self, { id: entry.id }), ahead: said.ahead };
      },
    };
  }),

  brokenBy("a hand-over leaves the entry where it is", () => () => ({ handOver: () => true })),

  brokenBy("a hand-over takes the heir out, too", () => (inner) => ({
    handOver: (queue, id, seq, heir) => {
      const removed = inner.remove(queue, id, false, seq);
      void inner.remove(queue, heir);
      return removed;
    },
  })),

  brokenBy("append looks first and then appends, and is overtaken in between", () => (inner) => {
    const underWay = new Set<string>();
    return {
      append: async (queue, entry) => {
        const twice = underWay.has(entry.id);
        underWay.add(entry.id);
        await inner.list(queue);
        const said = await inner.append(queue, twice ? { ...entry, id: `${entry.id}/2` } : entry);
        underWay.delete(entry.id);
        return said;
      },
    };
  }),

  brokenBy("appended again, an entry goes to the tail", () => (inner) => ({
    append: async (queue, entry) => {
      await inner.remove(queue, entry.id);
      return inner.append(queue, entry);
    },
  })),

  brokenBy("appended again, an entry lives longer", () => (inner) => ({
    append: async (queue, entry) => {
      const known = (await inner.list(queue)).find(({ id }) => id === entry.id);
      if (known !== undefined)
        await inner.renew([{ queue, id: entry.id, seq: known.seq, ttlMs: entry.ttlMs }]);
      return inner.append(queue, entry);
    },
  })),

  brokenBy("renews whatever has the id", () => (inner) => ({
    renew: async (renewals) =>
      inner.renew(
        await Promise.all(
          renewals.map(async (renewal) => {
            const known = (await inner.list(renewal.queue)).find(({ id }) => id === renewal.id);
            return { ...renewal, seq: known?.seq ?? renewal.seq };
          }),
        ),
      ),
  })),

  brokenBy("evicts whatever has the id", () => (inner) => ({
    remove: (queue, id, evict) => inner.remove(queue, id, evict),
  })),

  brokenBy("releases whatever has the id", () => (inner) => ({
    remove: (queue, id, evict, seq) => inner.remove(queue, id, evict, evict ? seq : undefined),
  })),

  brokenBy("an id that has left is not taken again", () => {
    const left = new Set<string>();
    return (inner) => ({
      append: (queue, entry) => (left.has(entry.id) ? null : inner.append(queue, entry)),
      remove: (queue, id, evict, seq) => {
        left.add(id);
        return inner.remove(queue, id, evict, seq);
      },
    });
  }),

  brokenBy("a refused append leaves its entry in the queue", () => (inner) => ({
    append: async (queue, entry) => {
      const said = await inner.append(queue, entry);
      if (said === null) await inner.append(queue, { ...entry, onlyIfGranted: false });
      return said;
    },
  })),

  brokenBy("onlyIfGranted is ignored", () => (inner) => ({
    append: (queue, entry) => inner.append(queue, { ...entry, onlyIfGranted: false }),
  })),

  refusing("onlyIfGranted refuses whenever somebody is there", () => true),
  refusing("onlyIfGranted refuses what is found again", (found, entry) =>
    found.some(({ id }) => id === entry.id),
  ),

  brokenBy("declares no shared locks, and grants them", () => (inner) => ({
    traits: { ...inner.traits, shared: false },
  })),

  brokenBy("declares no semaphores, and grants permits", () => (inner) => ({
    traits: { ...inner.traits, counted: false },
  })),

  renumbering("seq restarts when the queue empties", () => {
    const bases = new Map<string, bigint>();
    return ({ self, ahead }, queue) => {
      if (ahead.count === 0) bases.set(queue, self.seq - 1n);
      return (seq) => seq - (bases.get(queue) ?? 0n);
    };
  }),

  renumbering("seq goes back", () => () => (seq) => 2n ** 53n - seq),

  brokenBy("seq is counted by each client", () => {
    const shown = new Map<bigint, bigint>();
    return (inner) => {
      let own = 0n;
      const entryAs = (entry: Entry): Entry => viewed(entry, { seq: shown.get(entry.seq) ?? ++own });
      const snapshotAs = ({ self, ahead }: Snapshot): Snapshot => {
        const seq = shown.get(self.seq) ?? ++own;
        shown.set(self.seq, seq);
        return { self: viewed(self, { seq }), ahead };
      };
      return showing(inner, entryAs, snapshotAs);
    };
  }),

  brokenBy(
    "seq is a number",
    () => (inner) =>
      // What a driver gives that parses JSON.
      showing(inner, (entry) => viewed(entry, { seq: JSON.parse(String(entry.seq)) })),
  ),

  brokenBy("remove does not look at the id", () => (inner) => ({
    remove: async (queue) => {
      const [first] = await inner.list(queue);
      return first !== undefined && inner.remove(queue, first.id);
    },
  })),

  brokenBy("remove of what is not there takes the first", () => (inner) => ({
    remove: async (queue, id, evict, seq) => {
      const list = await inner.list(queue);
      const found = list.find((entry) => entry.id === id) ?? list[0];
      return found !== undefined && inner.remove(queue, found.id, evict, found.id === id ? seq : undefined);
    },
  })),

  brokenBy("remove does not look at the queue", () => {
    const queues = new Map<string, string>();
    return (inner) => ({
      append: (queue, entry) => {
        queues.set(entry.id, queue);
        return inner.append(queue, entry);
      },
      remove: (queue, id, evict, seq) => inner.remove(queues.get(id) ?? queue, id, evict, seq),
    });
  }),

  brokenBy("remove always says that it was there", () => (inner) => ({
    remove: (queue, id, evict, seq) => after(inner.remove(queue, id, evict, seq), () => true),
  })),

  brokenBy("remove takes all that is behind, too", () => (inner) => ({
    remove: async (queue, id, evict, seq) => {
      const list = await inner.list(queue);
      const place = list.findIndex((entry) => entry.id === id);
      const behind = place < 0 ? [] : list.slice(place + 1);
      for (const entry of behind) await inner.remove(queue, entry.id);
      return inner.remove(queue, id, evict, seq);
    },
  })),

  brokenBy("remove says yes and does nothing", () => {
    const done = new Set<string>();
    return (inner) => ({
      remove: async (queue, id, _evict, seq) => {
        const found = (await inner.list(queue)).find((entry) => entry.id === id && !done.has(id));
        if (found === undefined || (seq !== undefined && found.seq !== seq)) return false;
        done.add(id);
        return true;
      },
    });
  }),
];

/** Refuses a busy lock, or one of which `refuses` says so, though it might be granted. */
function refusing(name: string, refuses: (found: readonly Entry[], entry: NewEntry) => boolean): Broken {
  return brokenBy(name, () => (inner) => ({
    append: async (queue, entry) => {
      const found = await inner.list(queue);
      const refused = entry.onlyIfGranted === true && found.length > 0 && refuses(found, entry);
      return refused ? null : inner.append(queue, entry);
    },
  }));
}
