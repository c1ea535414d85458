/**
 * Who holds, as a pure function of a queue: three rules that look only ahead, so that removing an entry never revokes a
 * grant. No clock, no I/O.
 */
import type { Ahead, Entry } from "./backend.ts";

/** What decides which rule an entry is under. */
export type Ruled = Pick<Entry, "mode" | "permits">;

/** What the rules need to know of an entry. */
export type Weighed = Pick<Entry, "weight" | "permits">;

/** One way of deciding: does this entry hold, and if not, whose leaving is worth waiting for? */
export interface Rule {
  grants(self: Weighed, ahead: Ahead): boolean;
  /** The entry to watch; null when any entry ahead may make room. */
  blocker(ahead: Ahead): Entry | null;
}

/** Holds when nobody is ahead. */
export const exclusive: Rule = {
  grants: (_self, ahead) => ahead.nearest === null,
  blocker: (ahead) => ahead.nearest,
};

/** Holds when no writer is ahead. */
export const shared: Rule = {
  grants: (_self, ahead) => ahead.nearestWriter === null,
  blocker: (ahead) => ahead.nearestWriter,
};

/**
 * Holds when what is ahead leaves enough permits. Waiters ahead count too: a heavy one is never overtaken for ever by
 * light ones. Each entry is judged by its own number of permits, so the number may change while clients are replaced.
 */
export const counted: Rule = {
  grants: (self, ahead) => ahead.weight + self.weight <= (self.permits ?? 0),
  blocker: () => null,
};

/** The rule that decides for an entry. */
export function ruleOf(entry: Ruled): Rule {
  if (entry.permits !== undefined) return counted;
  return entry.mode === "read" ? shared : exclusive;
}

/** Splits a whole queue, first to last, into those who hold and those who wait. */
export function split(entries: readonly Entry[]): { held: Entry[]; pending: Entry[] } {
  const held: Entry[] = [];
  const pending: Entry[] = [];
  let ahead: Ahead = nothingAhead;
  for (const entry of entries) {
    (ruleOf(entry).grants(entry, ahead) ? held : pending).push(entry);
    ahead = {
      count: ahead.count + 1,
      weight: ahead.weight + entry.weight,
      nearest: entry,
      nearestWriter: entry.mode === "write" ? entry : ahead.nearestWriter,
    };
  }
  return { held, pending };
}

/**
 * Who is evicted before whom when somebody steals, so that nobody is granted on the way: those who wait, and only then
 * those who hold. Behind a writer that holds they go in their order, in which they will join again; behind readers that
 * hold, the readers among them first, since without the writers ahead they would be granted.
 */
export function evictionOrder(entries: readonly Entry[]): readonly Entry[] {
  const { held, pending } = split(entries);
  if (held.some(({ mode }) => mode === "write")) return [...pending, ...held];
  const readers = pending.filter(({ mode }) => mode === "read");
  const writers = pending.filter(({ mode }) => mode === "write");
  return [...readers, ...writers, ...held];
}

/** What the first entry of a queue has ahead. */
export const nothingAhead: Ahead = Object.freeze({
  count: 0,
  weight: 0,
  nearest: null,
  nearestWriter: null,
});
