/** Names of keys and channels, and the slot of a cluster that each belongs to; pure text. */

/** The keys of one queue; all of them in one slot. */
export interface QueueKeys {
  /** The only entry, or what is known of all. */
  readonly queue: string;
  /** The entries once there is more than one: a hash from ids to records. */
  readonly entries: string;
  /** Their order. */
  readonly order: string;
  /** Who was evicted and has not asked since. */
  readonly evicted: string;
}

/** The keys of a queue, its name, and the slot that they are in: 0 but on a cluster. */
export interface PlacedKeys extends QueueKeys {
  readonly name: string;
  readonly slot: number;
}

// An empty hash tag is none, so a name that starts with "}" gets a character in front, and so does one that starts with it.
const guard = "\u0001";

/** The keys of a queue: its name is the hash tag. */
export function keysOf(prefix: string, name: string): QueueKeys {
  const queue = `${prefix}{${name.startsWith("}") || name.startsWith(guard) ? guard + name : name}}`;
  return { queue, entries: `${queue}:e`, order: `${queue}:o`, evicted: `${queue}:x` };
}

/** How many names are remembered. */
const mostNames = 16_384;

/** The keys of queues, made once for those that are asked about again and again. */
export class KeyNames {
  readonly #prefix: string;
  readonly #cluster: boolean;
  readonly #known = new Map<string, PlacedKeys>();

  constructor(prefix: string, cluster: boolean) {
    this.#prefix = prefix;
    this.#cluster = cluster;
  }

  /** The slot of a queue's keys. */
  slotOf(name: string): number {
    return this.#cluster ? this.of(name).slot : 0;
  }

  of(name: string): PlacedKeys {
    let keys = this.#known.get(name);
    if (keys === undefined) {
      const own = keysOf(this.#prefix, name);
      keys = { ...own, name, slot: this.#cluster ? slotOf(own.queue) : 0 };
      if (this.#known.size >= mostNames) this.#known.clear();
      this.#known.set(name, keys);
    }
    return keys;
  }
}

/** The name of the queue that a key belongs to; null if it is none of ours, or not the first of its queue. */
export function nameOfKey(prefix: string, key: string): string | null {
  if (!key.startsWith(`${prefix}{`) || !key.endsWith("}")) return null;
  const name = key.slice(prefix.length + 1, -1);
  return name.startsWith(guard) ? name.slice(guard.length) : name;
}

/** The pattern of SCAN that finds the queues whose names start with a text. */
export function patternOf(prefix: string, start: string): string {
  const { queue } = keysOf(prefix, start);
  return `${queue.slice(0, -1).replace(/[*?[\]\\^]/g, "\\$&")}*}`;
}

/** The part of a key that decides its slot. */
export function hashTagOf(key: string): string {
  const open = key.indexOf("{");
  if (open < 0) return key;
  const close = key.indexOf("}", open + 1);
  return close <= open + 1 ? key : key.slice(open + 1, close);
}

/** How many slots a cluster has. */
const slots = 16_384;

/** The slot of a key: CRC16 (XMODEM) of its hash tag. */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(hashTagOf(key))) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % slots;
}

/** A hash tag for each slot: made when one is first asked for, since most have no cluster. */
let tags: readonly string[] | null = null;

/** A short hash tag whose keys and channels belong to a slot. */
export function tagOfSlot(slot: number): string {
  tags ??= tagsOfSlots();
  return tags[slot] ?? "";
}

/** CRC16 is linear: 14 bits, spread over four letters that differ in those bits alone, meet each slot once. */
function tagsOfSlots(): readonly string[] {
  const all: string[] = [];
  for (let n = 0; n < slots; n++) {
    const letters = [n >> 12, (n >> 8) & 15, (n >> 4) & 15, n & 15].map((bits) => 0x60 + bits);
    const tag = String.fromCharCode(...letters);
    all[slotOf(tag)] = tag;
  }
  return all;
}
