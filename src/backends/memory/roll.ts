/**
 * Finds the entries of a long line by id. An entry that leaves is only struck out, since in a long line each look into a
 * hash table costs more than the rest of a hand-over; the line makes a new roll when this one is full.
 */
import type { MemoryEntry } from "./line.ts";

/** The entries of one line, with room for so many. */
export class Roll {
  private readonly entries: (MemoryEntry | null)[] = [];
  /** An open hash table of positions in `entries`, counted from 1; 0 is an empty slot. At most half of it is used. */
  private readonly slots: Int32Array;

  constructor(room: number) {
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * room)));
  }

  /** Whether there is no room for one more; those that have left still take theirs. */
  get full(): boolean {
    return this.entries.length * 2 >= this.slots.length;
  }

  add(entry: MemoryEntry): void {
    let slot = this.firstSlot(entry.id);
    while (this.slots[slot] !== 0) slot = this.nextSlot(slot);
    entry.enrolled = this.entries.push(entry);
    this.slots[slot] = entry.enrolled;
  }

  find(id: string): MemoryEntry | undefined {
    for (let slot = this.firstSlot(id); ; slot = this.nextSlot(slot)) {
      const position = this.slots[slot] ?? 0;
      if (position === 0) return undefined;
      const entry = this.entries[position - 1];
      if (entry?.id === id) return entry;
    }
  }

  strike(entry: MemoryEntry): void {
    this.entries[entry.enrolled - 1] = null;
  }

  private firstSlot(id: string): number {
    return hashOf(id) & (this.slots.length - 1);
  }

  private nextSlot(slot: number): number {
    return (slot + 1) & (this.slots.length - 1);
  }
}

/** FNV-1a over the code units, and a last mix, since the slots are the low bits. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return hash ^ (hash >>> 15);
}
