/** Names of keys: a lock is one plain key, so that every program that follows the usual recipe meets it; pure text. */

/** What our own keys and channels start with, whatever locks are called. */
const ownSpace = "holdfast:redlock:";

/** The largest token that a node has stored, for all locks; it is the only key that outlives its owner. */
export const counterKey: string = `${ownSpace}counter`;

/** The key of a lock. */
export function keyOf(prefix: string, queue: string): string {
  return prefix + queue;
}

/** Whether a key is none of a lock, but one of those that are kept beside them. */
export function isOwnKey(key: string): boolean {
  return key.startsWith(ownSpace);
}

// As scripts/values.lua and scripts/free.lua have it.
const freedChannel = `${ownSpace}free:`;

/** The channel on which it is told that a key was taken out: apart from those of programs that call one like their data. */
export function channelOf(key: string): string {
  return freedChannel + key;
}

/** The key that a channel is about. */
export function keyOfChannel(channel: string): string {
  return channel.slice(freedChannel.length);
}

/** The key that tells an owner that its entry was evicted. */
export function evictedKeyOf(prefix: string, id: string): string {
  return `${ownSpace}evicted:${prefix}${id}`;
}

/** The name of the queue that a key belongs to; null if it is not that of a lock. */
export function queueOf(prefix: string, key: string): string | null {
  if (!key.startsWith(prefix) || isOwnKey(key)) return null;
  const queue = key.slice(prefix.length);
  return queue === "" ? null : queue;
}

/** The pattern of SCAN that finds the keys whose names start with a text. */
export function patternOf(prefix: string, start: string): string {
  return `${(prefix + start).replace(/[*?[\]\\^]/g, "\\$&")}*`;
}
