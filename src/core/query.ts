/** Who holds and who waits, for people: the standard's query, with what a fleet wants to know on top. */
import { type Backend, type Entry, isBrowsable } from "./backend.ts";
import type { Clock } from "./clock.ts";
import { LockError } from "./errors.ts";
import { split } from "./grant.ts";
import { nameOfQueue, semaphoreQueue } from "./names.ts";

/** One request, held or pending. */
export interface LockInfo {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
  readonly clientId: string;
  /** The fencing token that its Lock has, or will have. */
  readonly token: bigint;
  readonly owner: { readonly host: string; readonly pid: number; readonly label?: string | undefined };
  /** When it joined the queue. */
  readonly since: Date;
  readonly expiresInMs: number;
  readonly metadata?: string | undefined;
  /** For a permit of a semaphore: how many it takes, of how many. */
  readonly weight?: number | undefined;
  readonly permits?: number | undefined;
}

/** A picture of the queues: each queue is seen at one moment, but not all at the same. */
export interface LockManagerSnapshot {
  readonly held: LockInfo[];
  readonly pending: LockInfo[];
}

/** How many queues are asked for at once. */
const batchSize = 64;

/** All requests whose name starts with a prefix, in the order of their tokens. */
export async function query(backend: Backend, clock: Clock, prefix: string): Promise<LockManagerSnapshot> {
  if (!isBrowsable(backend)) {
    throw new LockError("LOCK_UNSUPPORTED", `${backend.name} cannot list its locks`, {
      backend: backend.name,
    });
  }
  const [locks, semaphores] = await Promise.all([
    backend.queues(prefix),
    backend.queues(semaphoreQueue(prefix)),
  ]);
  const queues = [...new Set([...locks, ...semaphores])];
  const held: LockInfo[] = [];
  const pending: LockInfo[] = [];
  for (let from = 0; from < queues.length; from += batchSize) {
    const batch = queues.slice(from, from + batchSize);
    const lists = await Promise.all(batch.map((queue) => backend.list(queue)));
    lists.forEach((entries, index) => {
      const name = nameOfQueue(batch[index] ?? "");
      const parts = split(entries);
      held.push(...parts.held.map((entry) => infoOf(name, entry, clock)));
      pending.push(...parts.pending.map((entry) => infoOf(name, entry, clock)));
    });
  }
  return { held: held.toSorted(byToken), pending: pending.toSorted(byToken) };
}

function infoOf(name: string, entry: Entry, clock: Clock): LockInfo {
  const { host, pid, label, client } = entry.owner;
  return {
    name,
    mode: entry.mode === "read" ? "shared" : "exclusive",
    clientId: client,
    token: entry.seq,
    owner: label === undefined ? { host, pid } : { host, pid, label },
    since: new Date(clock.wallMs() - entry.ageMs),
    expiresInMs: entry.expiresInMs,
    ...(entry.metadata === undefined ? {} : { metadata: entry.metadata }),
    ...(entry.permits === undefined ? {} : { weight: entry.weight, permits: entry.permits }),
  };
}

function byToken(a: LockInfo, b: LockInfo): number {
  if (a.token === b.token) return 0;
  return a.token < b.token ? -1 : 1;
}
