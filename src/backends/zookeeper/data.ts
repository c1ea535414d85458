/** What the data of a node says of an entry: ours is JSON; of nodes that others made only their being there is known. */
import type { Entry, NewEntry, Owner } from "../../core/backend.ts";
import type { Stat } from "./client/index.ts";
import type { Node } from "./nodes.ts";

/** How long an entry whose maker wrote no ttl is taken to have left: when to look again at the latest. */
const foreignLifeMs = 30_000;

/** An entry as it was read, and the node that it is. */
export interface NodeEntry extends Entry {
  readonly node: string;
}

/** The data for a new entry. */
export function encodeEntry({ id, owner, ttlMs, permits, metadata }: NewEntry): Buffer {
  return Buffer.from(JSON.stringify({ holdfast: 1, id, owner, ttlMs, permits, metadata }));
}

/** An entry of somebody else; what is left of its life is what its owner gave it last, at most. */
export function readEntry(node: Node, data: Buffer, stat: Stat, wallMs: number): NodeEntry {
  const said = parseData(data);
  const { mode, weight, name } = node;
  const seen = { node: name, mode, weight, seq: stat.czxid, ageMs: Math.max(0, wallMs - Number(stat.ctime)) };
  if (said === null) {
    const client = `session 0x${BigInt.asUintN(64, stat.ephemeralOwner).toString(16)}`;
    const owner = { client, host: data.toString("utf8", 0, 100), pid: 0 };
    return { ...seen, id: name, owner, expiresInMs: foreignLifeMs };
  }
  const { id, owner, ttlMs, permits, metadata } = said;
  return { ...seen, id, owner, permits, metadata, expiresInMs: ttlMs };
}

type Said = Pick<NewEntry, "id" | "owner" | "ttlMs" | "permits" | "metadata">;

function parseData(data: Buffer): Said | null {
  if (data[0] !== 0x7b) return null;
  try {
    const said: unknown = JSON.parse(data.toString("utf8"));
    return isSaid(said) ? said : null;
  } catch {
    return null;
  }
}

function isSaid(value: unknown): value is Said {
  if (typeof value !== "object" || value === null) return false;
  const { holdfast, id, owner, ttlMs, permits, metadata }: { [Key in keyof Said | "holdfast"]?: unknown } =
    value;
  return (
    holdfast === 1 &&
    typeof id === "string" &&
    isOwner(owner) &&
    typeof ttlMs === "number" &&
    (permits === undefined || typeof permits === "number") &&
    (metadata === undefined || typeof metadata === "string")
  );
}

function isOwner(value: unknown): value is Owner {
  if (typeof value !== "object" || value === null) return false;
  const { client, host, pid, label }: { [Key in keyof Owner]?: unknown } = value;
  const labelled = label === undefined || typeof label === "string";
  return typeof client === "string" && typeof host === "string" && typeof pid === "number" && labelled;
}
