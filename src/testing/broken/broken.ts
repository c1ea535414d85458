/** How a backend is broken on purpose: a layer around the memory backend with one defect. What is broken is written in the other files. */
import {
  type Answer,
  type Backend,
  type Browsable,
  type Entry,
  isBrowsable,
  type Snapshot,
} from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { settle } from "../manual-clock.ts";
import { manualMemoryStore } from "../memory-store.ts";
import type { ContractStore } from "../store.ts";

/** A backend with one defect, which some case of the contract must catch. */
export interface Broken {
  readonly name: string;
  /** A fresh store, broken; one whose time moves only when told, unless another is given. */
  readonly open: (store?: ClockedStore) => ContractStore;
}

/** A store of the memory backend and the clock that it lives by. */
export type ClockedStore = ContractStore & { readonly clock: Clock };

/** What a defect can do: see a backend that works and change some of its calls. */
export type Changes = Partial<Omit<Backend & Browsable, "name">>;

/** Makes a broken backend: `defect` is called once for each store, what it gives once for each client. */
export function brokenBy(
  name: string,
  defect: (clock: Clock) => (inner: Backend & Browsable) => Changes,
): Broken {
  const open = (store: ClockedStore = manualMemoryStore()): ContractStore => {
    const change = defect(store.clock);
    const client = async (): Promise<Backend> => through(await store.client(), change);
    return { ...store, client };
  };
  return { name, open };
}

/** Not broken at all: it passes each call on, and lets clients hand their locks over. */
export const sound: Broken = brokenBy("nothing", () => (inner) => ({
  handOver: (queue, id, seq) => inner.remove(queue, id, false, seq),
}));

/**
 * A backend that passes each call on, but for the changes. Watchers are told, and listings given, in a later turn of the
 * event loop, so that a defect that makes somebody ask again and again makes a case fail and not spin.
 */
function through(client: Backend, change: (inner: Backend & Browsable) => Changes): Backend & Browsable {
  if (!isBrowsable(client)) throw new TypeError("the memory backend can name its queues");
  const inner = client;
  const whole: Backend & Browsable = {
    name: "broken",
    traits: inner.traits,
    append: (queue, entry, signal) => inner.append(queue, entry, signal),
    renew: (renewals) => inner.renew(renewals),
    remove: (queue, id, evict, seq) => inner.remove(queue, id, evict, seq),
    list: (queue) => inner.list(queue),
    watch: (queue, self, target, onChange) => inner.watch(queue, self, target, onChange),
    onEvicted: (listener) => inner.onEvicted?.(listener),
    queues: (prefix) => inner.queues(prefix),
    close: () => inner.close(),
    ...change(inner),
  };
  const list = async (queue: string): Promise<readonly Entry[]> => {
    await settle();
    return whole.list(queue);
  };
  return { ...whole, list, watch: inLaterTurns(whole) };
}

function inLaterTurns({ watch }: Pick<Backend, "watch">): Backend["watch"] {
  return (queue, self, target, onChange) => {
    const turns = new Set<NodeJS.Immediate>();
    const later = (fresh?: Snapshot): void => {
      turns.add(setImmediate(() => onChange(fresh)));
    };
    return after(watch(queue, self, target, later), (unwatch) => () => {
      for (const turn of turns) clearImmediate(turn);
      unwatch();
    });
  };
}

/** Changes the entries and snapshots that a backend shows, and nothing else. */
export function showing(
  inner: Backend,
  entryAs: (entry: Entry, queue: string) => Entry,
  snapshotAs: (snapshot: Snapshot, queue: string) => Snapshot = (snapshot, queue) =>
    mapEntries(snapshot, (entry) => entryAs(entry, queue)),
): Pick<Backend, "append" | "list" | "watch"> {
  return {
    append: (queue, entry, signal) =>
      after(inner.append(queue, entry, signal), (said) => (said === null ? null : snapshotAs(said, queue))),
    list: async (queue) => (await inner.list(queue)).map((entry) => entryAs(entry, queue)),
    watch: (queue, self, target, onChange) =>
      inner.watch(queue, self, target, (fresh) =>
        onChange(fresh === undefined ? undefined : snapshotAs(fresh, queue)),
      ),
  };
}

/** A snapshot with each entry changed. */
function mapEntries({ self, ahead }: Snapshot, change: (entry: Entry) => Entry): Snapshot {
  const { count, weight, nearest, nearestWriter } = ahead;
  return {
    self: change(self),
    ahead: {
      count,
      weight,
      nearest: nearest === null ? null : change(nearest),
      nearestWriter: nearestWriter === null ? null : change(nearestWriter),
    },
  };
}

/** Goes on with an answer, at once if it is there. */
export function after<T, U>(answer: Answer<T>, then: (value: T) => U): Answer<U> {
  return answer instanceof Promise ? answer.then(then) : then(answer);
}

/** An entry as it is now, with some fields changed: entries of memory are live views, which a spread would not copy. */
export function viewed(entry: Entry, changes: Partial<Entry> = {}): Entry {
  const { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata } = entry;
  return { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata, ...changes };
}

/** What is ahead of an entry by a listing. */
export function snapshotIn(entries: readonly Entry[], self: Entry): Snapshot {
  const place = entries.findIndex(({ id }) => id === self.id);
  const ahead = place < 0 ? [...entries] : entries.slice(0, place);
  return {
    self,
    ahead: {
      count: ahead.length,
      weight: ahead.reduce((sum, { weight }) => sum + weight, 0),
      nearest: ahead.at(-1) ?? null,
      nearestWriter: ahead.findLast(({ mode }) => mode === "write") ?? null,
    },
  };
}
