/**
 * Makes something that fails smaller while it still fails: a schedule or a history loses whole processes first, then
 * whole operations. What failing means is left to the caller.
 */
import { renumber, type HistoryEvent } from "./history.ts";

/** Whether what is left still fails. May run a whole simulation. */
export type Fails<T> = (items: readonly T[]) => boolean | Promise<boolean>;

/** Names the group that an item goes with; null for an item that always stays. */
export type Grouping<T> = (item: T) => string | null;

/**
 * Drops groups of items, by one grouping after the other, until none of them can go without the failure going too.
 * What it gives fails, if items did; `fails` is called about g·log g times for g groups, more if little can go.
 */
export async function shrink<T>(
  items: readonly T[],
  fails: Fails<T>,
  groupings: readonly Grouping<T>[],
): Promise<readonly T[]> {
  let left = items;
  for (const groupOf of groupings) left = await dropGroups(left, fails, groupOf);
  return left;
}

/** Drops processes, then operations, from a history. The end stays, so that what is left is not cut off. */
export async function shrinkHistory(
  events: readonly HistoryEvent[],
  fails: Fails<HistoryEvent>,
): Promise<readonly HistoryEvent[]> {
  const left = await shrink<HistoryEvent>(events, (kept) => fails(renumber(kept)), [
    ({ f, proc }) => (f === "end" ? null : proc),
    ({ f, proc, attempt, call, fault, target }) => {
      return f === "end"
        ? null
        : JSON.stringify(attempt === undefined ? [f, proc, call, fault, target] : [attempt]);
    },
    ({ f, proc, attempt, call }) => {
      return f === "end" || f === "acquire" || f === "try" ? null : JSON.stringify([f, proc, attempt, call]);
    },
  ]);
  return renumber(left);
}

/** Tries to drop half of the groups, then quarters, down to single ones; and those again while any of them goes. */
async function dropGroups<T>(
  items: readonly T[],
  fails: Fails<T>,
  groupOf: Grouping<T>,
): Promise<readonly T[]> {
  let left = items;
  let groups = [...new Set(items.map(groupOf))].filter((group) => group !== null);
  let size = Math.ceil(groups.length / 2);
  while (size > 0) {
    const before = groups.length;
    for (let at = 0; at < groups.length;) {
      const dropped = new Set<string | null>(groups.slice(at, at + size));
      const kept = left.filter((item) => !dropped.has(groupOf(item)));
      if (await fails(kept)) {
        left = kept;
        groups = groups.filter((group) => !dropped.has(group));
      } else at += size;
    }
    if (size > 1) size = Math.ceil(size / 2);
    else if (groups.length === before) size = 0;
  }
  return left;
}
