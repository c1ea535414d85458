/** Small questions that many cases ask about queues, snapshots and errors. */
import assert from "node:assert/strict";
import type { Ahead, Backend, Entry, Snapshot } from "../core/backend.ts";
import { hasCode, type LockErrorCode } from "../core/errors.ts";
import { ruleOf } from "../core/grant.ts";

/** What is ahead, in short: entries by their ids. */
export interface AheadInShort {
  readonly count: number;
  readonly weight: number;
  readonly nearest: string | null;
  readonly nearestWriter: string | null;
}

/** The ids of entries, in their order. */
export function idsOf(entries: readonly Entry[]): string[] {
  return entries.map(({ id }) => id);
}

/** The ids of a queue's entries, first to last. */
export async function idsIn(backend: Backend, queue: string): Promise<string[]> {
  return idsOf(await backend.list(queue));
}

/** What a store said is ahead, in short. */
export function inShort(ahead: Ahead): AheadInShort {
  const { count, weight, nearest, nearestWriter } = ahead;
  return { count, weight, nearest: nearest?.id ?? null, nearestWriter: nearestWriter?.id ?? null };
}

/** What is ahead of an entry by a listing: the reference for what a store says. */
export function aheadBy(entries: readonly Entry[], id: string): AheadInShort {
  const ahead = entries.slice(0, idsOf(entries).indexOf(id));
  return {
    count: ahead.length,
    weight: ahead.reduce((sum, { weight }) => sum + weight, 0),
    nearest: ahead.at(-1)?.id ?? null,
    nearestWriter: ahead.findLast(({ mode }) => mode === "write")?.id ?? null,
  };
}

/** Whether the entry of a snapshot holds. */
export function granted({ self, ahead }: Snapshot): boolean {
  return ruleOf(self).grants(self, ahead);
}

/** Calls a backend so that an error it throws and one it rejects with look the same, and checks the error's code. */
export async function rejectsWith(code: LockErrorCode, call: () => unknown, what: string): Promise<void> {
  const outcome = await (async () => call())().then(
    () => "it did not reject",
    (error: unknown) => (hasCode(error, code) ? code : `it rejected with ${String(error)}`),
  );
  assert.equal(outcome, code, what);
}

/** Several of something, made one after the other. */
export async function times<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let index = 0; index < count; index++) made.push(await make(index));
  return made;
}

/** An item of a list that must have it. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items.at(index);
  assert.ok(item !== undefined, `there is no item ${index}`);
  return item;
}
