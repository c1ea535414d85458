/** What is in the store: the entries of a queue, and the names of the queues. */
import type { Entry } from "../../core/backend.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import * as methods from "./client/methods.ts";
import { entryOf, isEntry } from "./entry-text.ts";
import { inOrder } from "./steps.ts";
import type { EtcdStore } from "./store.ts";

/** How many keys are asked for at once. */
const pageSize = 1_000n;
/** How many leases are asked for at once. */
const leasesAtOnce = 50;

/** The entries of a queue, first to last, each with what is left of its life. */
export async function listEntries(store: EtcdStore, queue: string): Promise<readonly Entry[]> {
  const startedAt = store.clock.now();
  const request = inOrder(store.layout.entries(queue));
  const { kvs } = await store.calls.read("listing a queue", methods.range, request);
  const lives = await livesOf(store, new Set(kvs.map(({ lease }) => lease)));
  const wallMs = store.clock.wallMs();
  return kvs.map((kv) => {
    const shown = entryOf(store.layout, queue, kv, wallMs);
    const own = store.own(queue, shown.id);
    const life = lives.get(kv.lease) ?? shown.expiresInMs;
    const isOwn = own !== undefined && own.seq === kv.createRevision;
    const left = isOwn ? Math.min(life, own.until - startedAt) : life;
    return { ...shown, expiresInMs: Math.max(0, Math.floor(left)) };
  });
}

/** What is left of leases, by the clock of the server; one that cannot be asked for is left out. */
async function livesOf(store: EtcdStore, leases: ReadonlySet<bigint>): Promise<Map<bigint, number>> {
  const asked = [...leases].filter((lease) => lease !== 0n);
  const lives = new Map<bigint, number>();
  const next = async (): Promise<void> => {
    for (let lease = asked.pop(); lease !== undefined; lease = asked.pop()) {
      const own = store.leases.find(lease);
      const leftMs = own === undefined ? await store.lifeOf(lease) : own.until - store.clock.now();
      lives.set(lease, leftMs);
    }
  };
  await Promise.all(Array.from({ length: leasesAtOnce }, next));
  return lives;
}

/** The names of queues that start so. */
export async function queueNames(store: EtcdStore, start: string): Promise<readonly string[]> {
  const names = new Set<string>();
  const { key: first, rangeEnd } = store.layout.queues(start);
  let from: Uint8Array = first;
  for (;;) {
    const request = { key: from, rangeEnd, limit: pageSize };
    const { kvs, more } = await store.calls.read("listing queues", methods.range, request);
    for (const kv of kvs) {
      const queue = isEntry(kv) ? store.layout.queueOf(textOf(kv)) : null;
      if (queue?.startsWith(start)) names.add(queue);
    }
    const last = kvs.at(-1);
    if (!more || last === undefined) return [...names];
    from = Buffer.concat([last.key, Buffer.from([0])]);
  }
}

function textOf({ key }: KeyValue): string {
  return Buffer.from(key).toString();
}
