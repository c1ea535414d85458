/** Names of keys: a lock is one plain key, so that every program that follows the usual recipe meets it; pure text. */

/** The largest token that a node has stored, for all locks; it is the only key that outlives its owner. */
export const counterKey = "holdfast:redlock:counter";

/** The key of a lock, and the channel on which its release is told. */
export function keyOf(prefix: string, queue: string): string {
  return prefix + queue;
}

// A name of a lock does not start like this: the core keeps "-" for itself.
const evictedMark = "-evicted/";

/** The key that tells an owner that its entry was evicted. */
export function evictedKeyOf(prefix: string, id: string): string {
  return prefix + evictedMark + id;
}

/** The name of the queue that a key belongs to; null if it is not that of a lock. */
export function queueOf(prefix: string, key: string): string | null {
  if (!key.startsWith(prefix) || key === counterKey) return null;
  const queue = key.slice(prefix.length);
  return queue === "" || queue.startsWith(evictedMark) ? null : queue;
}

/** The pattern of SCAN that finds the keys whose names start with a text. */
export function patternOf(prefix: string, start: string): string {
  return `${(prefix + start).replace(/[*?[\]\\^]/g, "\\$&")}*`;
}
