/**
 * The names of nodes in a queue: what they say of an entry, and which comes first. They are those of Curator's recipes, so that
 * its locks and ours read each other.
 */
import { createHash } from "node:crypto";
import type { EntryMode, NewEntry } from "../../core/backend.ts";

/** Whose names are used: those of InterProcessMutex, or those of InterProcessReadWriteLock. */
export type Layout = "mutex" | "read-write";

/** What the name of a node says. */
export interface Node {
  readonly name: string;
  /** The protection id of Curator; null if the maker used none. */
  readonly guid: string | null;
  readonly mode: EntryMode;
  readonly weight: number;
  /** Given by the server: a count of the parent's children, as long as the parent lives and the count lasts. */
  readonly sequence: number;
}

const endings: Readonly<Record<Layout, Readonly<Record<EntryMode, string>>>> = {
  // Whatever ends in lock-, Curator's mutex takes for an entry that is to be waited for.
  mutex: { write: "lock-", read: "shared-lock-" },
  "read-write": { write: "__WRIT__", read: "__READ__" },
};

/** The highest count: ZooKeeper gives it to all later children of that parent, too. */
export const lastSequence: number = 2 ** 31 - 1;

/** What the ids of the client that asked last begin with, and what that makes of their protection ids. */
let known = { prefix: "", head: "", tail: "" };

/**
 * The protection id for an entry's id: the same each time, so that a node is found again. Where ids differ only in a number at
 * their end, as those of one client do, only the last group differs, and nothing has to be hashed.
 */
export function guidOf(id: string): string {
  const [, prefix = id, number] = /^(.*[.-])(0|[1-9]\d{0,13})$/s.exec(id) ?? [];
  if (prefix !== known.prefix) {
    const hex = createHash("sha256").update(prefix).digest("hex");
    const head = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-`;
    known = { prefix, head, tail: hex.slice(20, 32) };
  }
  return known.head + (number === undefined ? known.tail : Number(number).toString(16).padStart(12, "0"));
}

/** The name that a server completes with a sequence. */
export function stemFor(
  asked: Pick<NewEntry, "mode" | "weight" | "permits">,
  guid: string,
  layout: Layout,
): string {
  const { mode, weight, permits } = asked;
  if (permits === undefined) return `_c_${guid}-${endings[layout][mode]}`;
  return `_c_${guid}-w${weight}${mode === "read" ? "r" : ""}-lock-`;
}

const pattern = new RegExp(
  [
    "^(?:_c_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-)?", // the protection id
    "(?:(shared-)|w(\\d+)(r)?-)?", // what we add
    "(?:(?:lock-|(__READ__)|__WRIT__)(\\d{10}|-\\d{9,10})", // what Curator calls it
    "|.*?(\\d{10}))$", // what others may call it
  ].join(""),
);

/** Reads a name; null if it is not that of an entry. One that we do not know counts as exclusive. */
export function parseNode(name: string): Node | null {
  const match = pattern.exec(name);
  if (match === null) return null;
  const [, guid, shared, weight, light, read, ours, foreign] = match;
  const mode = shared !== undefined || read !== undefined || light !== undefined ? "read" : "write";
  return { name, guid: guid ?? null, mode, weight: Number(weight ?? 1), sequence: Number(ours ?? foreign) };
}

/** The entries among some names, in the order of their sequences. */
export function entriesAmong(names: readonly string[]): Node[] {
  const nodes: Node[] = [];
  for (const name of names) {
    const node = parseNode(name);
    if (node !== null) nodes.push(node);
  }
  return nodes.toSorted((a, b) => a.sequence - b.sequence);
}

/**
 * Whether the order of sequences is not that of creation any more: after two thousand million children the server gives the
 * last number again and again, or negative ones. Then only the zxids of creation tell.
 */
export function usedUp(nodes: readonly Node[]): boolean {
  return (nodes[0]?.sequence ?? 0) < 0 || nodes.at(-1)?.sequence === lastSequence;
}
