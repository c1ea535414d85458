/** The transactions of this backend, as requests, and what their answers say about a queue. When they are sent is left to backend.ts. */
import type { Ahead, Entry, NewEntry } from "../../core/backend.ts";
import type { Init } from "./client/codec.ts";
import { type KeyValue, type RangeRequest, sortOrder, sortTarget } from "./client/messages/kv.ts";
import {
  type Compare,
  compareResult,
  compareTarget,
  type RequestOp,
  type ResponseOp,
  type TxnRequest,
} from "./client/messages/txn.ts";
import type { KeyRange, Layout } from "./layout.ts";

/** How many entries ahead are counted one by one when an entry asks again where it stands; more count as so many. */
const mostCounted = 1_000n;

/** The key was created at this revision; at 0n: it does not exist, nor does any key in a range. */
export function createdAt(
  key: Uint8Array | string,
  createRevision: bigint,
  rangeEnd?: Uint8Array,
): Init<Compare> {
  return { target: compareTarget.create, key, createRevision, rangeEnd };
}

const newestFirst = { sortOrder: sortOrder.descend, sortTarget: sortTarget.create } as const;
const oldestFirst = { sortOrder: sortOrder.ascend, sortTarget: sortTarget.create } as const;

/** All entries of a range, first to last. */
export function inOrder(range: KeyRange): Init<RangeRequest> {
  return { ...range, ...oldestFirst };
}

/** The entry of a range that was created at this revision. */
export function createdExactlyAt(range: KeyRange, seq: bigint): Init<RangeRequest> {
  return { ...range, minCreateRevision: seq, maxCreateRevision: seq };
}

/** Where an entry is to be put, and what its other keys have to hold for that: each key and the revision of its creation. */
export interface Choice {
  readonly key: string;
  readonly expected: ReadonlyMap<string, bigint>;
}

function asExpected({ expected }: Choice): Init<Compare>[] {
  return Array.from(expected, ([key, createRevision]) => createdAt(key, createRevision));
}

/** What is at the keys that an entry may have. */
export function sights({ expected }: Choice): Init<RequestOp>[] {
  return Array.from(expected.keys(), (key) => ({ range: { key } }));
}

/** Put the entry if its keys are as expected, and look at what is ahead; else say what is there, if nobody may be ahead. */
export function putRequest(
  layout: Layout,
  queue: string,
  asked: NewEntry,
  choice: Choice,
  value: string,
  lease: bigint,
): Init<TxnRequest> {
  const compare = asExpected(choice);
  const isWriter = asked.mode === "write";
  if (asked.onlyIfGranted === true && asked.permits === undefined) {
    const blocking = isWriter ? layout.entries(queue) : layout.writers(queue);
    compare.push(createdAt(blocking.key, 0n, blocking.rangeEnd));
  }
  // Looked at before the entry is there: what is found is ahead of it.
  const looks: Init<RequestOp>[] =
    asked.permits === undefined
      ? [{ range: { ...layout.entries(queue), ...newestFirst, limit: 1n } }]
      : [{ range: inOrder(layout.entries(queue)) }];
  if (!isWriter && asked.permits === undefined) {
    looks.push({ range: { ...layout.writers(queue), ...newestFirst, limit: 1n } });
  }
  return {
    compare,
    success: [...looks, { put: { key: choice.key, value, lease } }],
    // Whoever waits fails so seldom that it asks then.
    failure: asked.onlyIfGranted === true ? sights(choice) : [],
  };
}

/** Put the entry if its keys are as expected and nobody has joined since this revision. */
export function putBehind(
  range: KeyRange,
  revision: bigint,
  choice: Choice,
  value: string,
  lease: bigint,
): Init<TxnRequest> {
  // Every key there is older than the next revision.
  const { target, result } = { target: compareTarget.create, result: compareResult.less };
  return {
    compare: [...asExpected(choice), { ...range, target, result, createRevision: revision + 1n }],
    success: [{ put: { key: choice.key, value, lease } }],
    failure: sights(choice),
  };
}

/** Look at what is ahead of an entry, if it still is there. */
export function findRequest(
  layout: Layout,
  queue: string,
  asked: NewEntry,
  key: Uint8Array | string,
  seq: bigint,
): Init<TxnRequest> {
  const maxCreateRevision = seq - 1n;
  const nearest = { ...newestFirst, maxCreateRevision, limit: 1n };
  const looks: Init<RequestOp>[] =
    asked.permits === undefined
      ? [
          { range: { ...layout.entries(queue), ...nearest } },
          { range: { ...layout.writers(queue), ...nearest } },
          { range: { ...layout.entries(queue), maxCreateRevision, keysOnly: true, limit: mostCounted } },
        ]
      : [{ range: { ...inOrder(layout.entries(queue)), maxCreateRevision } }];
  return { compare: [createdAt(key, seq)], success: looks };
}

/** Take out an entry, if it is the one that is meant. */
export function removal(key: Uint8Array | string, seq: bigint): Init<RequestOp> {
  return { txn: { compare: [createdAt(key, seq)], success: [{ deleteRange: { key } }] } };
}

/** How many keys a removal has deleted. */
export function removed(answers: readonly ResponseOp[]): number {
  return answers.reduce(
    (sum, { deleteRange, txn }) => sum + Number(deleteRange?.deleted ?? 0n) + removed(txn?.responses ?? []),
    0,
  );
}

/** What is ahead, from the answer to putRequest; null where a writer behind a reader has to ask which writer is the nearest. */
export function aheadOfTail(
  asked: NewEntry,
  answers: readonly ResponseOp[],
  show: (kv: KeyValue) => Entry,
): Ahead | null {
  const [all, writers] = answers.map(({ range }) => range);
  if (asked.permits !== undefined) return aheadIn((all?.kvs ?? []).map(show));
  const nearest = all?.kvs[0];
  const [count, last] = [Number(all?.count ?? 0n), nearest === undefined ? null : show(nearest)];
  if (asked.mode === "read") return ahead(count, last, shownFirst(writers?.kvs, show));
  return last?.mode === "read" ? null : ahead(count, last, last);
}

/** What is ahead, from the answer to findRequest. */
export function aheadInMiddle(looks: readonly ResponseOp[], show: (kv: KeyValue) => Entry): Ahead {
  const [all, writers, counted] = looks.map(({ range }) => range);
  if (counted === undefined) return aheadIn((all?.kvs ?? []).map(show));
  return ahead(counted.kvs.length, shownFirst(all?.kvs, show), shownFirst(writers?.kvs, show));
}

function shownFirst(kvs: readonly KeyValue[] | undefined, show: (kv: KeyValue) => Entry): Entry | null {
  const first = kvs?.[0];
  return first === undefined ? null : show(first);
}

/** Each entry of a lock weighs one. */
function ahead(count: number, nearest: Entry | null, nearestWriter: Entry | null): Ahead {
  return { count, weight: count, nearest, nearestWriter };
}

/** What is ahead of somebody behind all these. */
export function aheadIn(entries: readonly Entry[]): Ahead {
  return {
    count: entries.length,
    weight: entries.reduce((sum, { weight }) => sum + weight, 0),
    nearest: entries.at(-1) ?? null,
    nearestWriter: entries.findLast(({ mode }) => mode === "write") ?? null,
  };
}
