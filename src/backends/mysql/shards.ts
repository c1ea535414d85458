/** The order in which one call locks the shards of its queues, so that two calls never wait for each other. */

/** The same sum as CRC32() of MySQL, so that this order is that of the shards' rows. */
function crc32(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}

/** The shard of a queue. */
export function shardOf(queue: string): number {
  return crc32(Buffer.from(queue)) & 255;
}

/** Requests in the order of their shards, those of one queue in their own order; and how to bring answers back into the first order. */
export function inShardOrder(requests: readonly object[]): {
  readonly ordered: readonly object[];
  readonly restore: (answers: readonly unknown[]) => readonly unknown[];
} {
  if (requests.length === 1) return { ordered: requests, restore: (answers) => answers };
  const places = requests
    .map((request, index) => ({ request, index, shard: shardOf(String(Reflect.get(request, "queue"))) }))
    .toSorted((a, b) => a.shard - b.shard || a.index - b.index);
  return {
    ordered: places.map(({ request }) => request),
    restore(answers) {
      const restored: unknown[] = [];
      places.forEach(({ index }, at) => {
        restored[index] = answers[at];
      });
      return restored;
    },
  };
}
