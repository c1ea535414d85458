/** Every statement that is sent to the file, prepared once for a connection, and the rows that they give. */
import type { Entry, EntryMode, NewEntry, Owner } from "../../core/backend.ts";
import type { Database, Statement } from "./driver.ts";

/** An entry as the file has it. */
interface Row {
  readonly seq: bigint;
  readonly id: string;
  readonly mode: EntryMode;
  readonly weight: bigint;
  readonly permits: bigint | null;
  readonly since: bigint;
  readonly until: bigint;
  readonly process: string;
  readonly slot: bigint;
  readonly client: string;
  readonly host: string;
  readonly pid: bigint;
  readonly label: string | null;
  readonly metadata: string | null;
}

/** An entry with its times by the machine's clock: the same for every process, and so what processes tell each other. */
export interface Standing {
  readonly id: string;
  readonly owner: Owner;
  readonly mode: EntryMode;
  readonly weight: number;
  readonly permits: number | undefined;
  readonly seq: bigint;
  readonly sinceUs: number;
  readonly untilUs: number;
  readonly metadata: string | undefined;
  readonly process: string;
  readonly slot: number;
}

const columns =
  "seq, id, mode, weight, permits, since, until, process, slot, client, host, pid, label, metadata";

/** The statements of one connection. */
export interface Statements {
  readonly begin: Statement;
  readonly beginRead: Statement;
  readonly commit: Statement;
  readonly rollback: Statement;
  readonly nextSeq: Statement<{ readonly seq: bigint; readonly ceiling: bigint }>;
  readonly raiseCeiling: Statement;
  /** Appends to an empty queue, if the seq is above the last and within the ceiling. */
  readonly insertAlone: Statement;
  /** Takes out an entry with nobody behind it, if it is live. */
  readonly deleteLast: Statement;
  readonly insert: Statement;
  readonly delete: Statement;
  readonly front: Statement<Row>;
  readonly byId: Statement<Row>;
  readonly bySeq: Statement<Row>;
  readonly next: Statement<Row>;
  readonly nextReaders: Statement<Row>;
  readonly ahead: Statement<{
    readonly count: bigint;
    readonly weight: bigint | null;
    readonly until: bigint | null;
  }>;
  readonly nearest: Statement<Row>;
  readonly nearestWriter: Statement<Row>;
  readonly all: Statement<Row>;
  readonly deleteExpired: Statement<Row>;
  readonly ofProcess: Statement<Row & { readonly queue: string }>;
  readonly processes: Statement<{ readonly process: string }>;
  readonly processesAhead: Statement<{ readonly process: string }>;
  readonly queues: Statement<{ readonly queue: string }>;
  readonly expiredQueues: Statement<{ readonly queue: string }>;
  readonly renew: Statement<{ readonly until: bigint }>;
  readonly evict: Statement;
  readonly wasEvicted: Statement;
  readonly forgetEvicted: Statement;
  readonly setClock: Statement;
}

/** Prepares them all. */
export function prepare(db: Database): Statements {
  const entries = (condition: string): Statement<Row> =>
    db.prepare<Row>(`SELECT ${columns} FROM entries WHERE ${condition}`);
  return {
    begin: db.prepare("BEGIN IMMEDIATE"),
    beginRead: db.prepare("BEGIN"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    nextSeq: db.prepare("SELECT max(seq + 1, ?1) AS seq, ceiling FROM store"),
    raiseCeiling: db.prepare("UPDATE store SET ceiling = max(ceiling, ?1)"),
    insertAlone: db.prepare(
      `INSERT INTO entries (queue, behind, ${columns})
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16 FROM store
       WHERE seq < ?3 AND ceiling >= ?3 AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = ?1)`,
    ),
    deleteLast: db.prepare(
      `DELETE FROM entries WHERE queue = ?1 AND seq = ?2 AND id = ?3 AND until > ?4
       AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = ?1 AND seq > ?2)`,
    ),
    insert: db.prepare(
      `INSERT INTO entries (queue, behind, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    delete: db.prepare("DELETE FROM entries WHERE queue = ?1 AND seq = ?2"),
    front: entries("queue = ?1 ORDER BY seq LIMIT ?2"),
    byId: entries("queue = ?1 AND id = ?2 AND behind = 1"),
    bySeq: entries("queue = ?1 AND seq = ?2"),
    next: entries("queue = ?1 AND seq > ?2 ORDER BY seq LIMIT 1"),
    nextReaders: entries(
      `queue = ?1 AND seq > ?2 AND permits IS NULL AND seq < coalesce((SELECT seq FROM entries
       WHERE queue = ?1 AND seq > ?2 AND mode = 'write' ORDER BY seq LIMIT 1), 9223372036854775807) ORDER BY seq`,
    ),
    ahead: db.prepare(
      `SELECT count(*) AS count, sum(weight) AS weight, min(until) AS until
       FROM entries WHERE queue = ?1 AND seq < ?2`,
    ),
    nearest: entries("queue = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1"),
    nearestWriter: entries("queue = ?1 AND seq < ?2 AND mode = 'write' ORDER BY seq DESC LIMIT 1"),
    all: entries("queue = ?1 ORDER BY seq"),
    deleteExpired: db.prepare<Row>(
      `DELETE FROM entries WHERE queue = ?1 AND until <= ?2 RETURNING ${columns}`,
    ),
    ofProcess: db.prepare(`SELECT queue, ${columns} FROM entries WHERE process = ?1`),
    processes: db.prepare("SELECT DISTINCT process FROM entries"),
    processesAhead: db.prepare("SELECT DISTINCT process FROM entries WHERE queue = ?1 AND seq < ?2"),
    queues: db.prepare("SELECT DISTINCT queue FROM entries"),
    expiredQueues: db.prepare("SELECT DISTINCT queue FROM entries WHERE until <= ?1"),
    renew: db.prepare(
      `UPDATE entries SET until = max(until, ?1)
       WHERE queue = ?2 AND seq = ?3 AND id = ?4 AND until > ?5 RETURNING until`,
    ),
    evict: db.prepare("INSERT OR REPLACE INTO evicted VALUES (?1, ?2)"),
    wasEvicted: db.prepare("SELECT 1 FROM evicted WHERE seq = ?1 AND until > ?2"),
    forgetEvicted: db.prepare("DELETE FROM evicted WHERE until <= ?1"),
    setClock: db.prepare("UPDATE store SET clock = ?1"),
  };
}

/** What a row says. */
export function standingOf(row: Row): Standing {
  return {
    id: row.id,
    owner: { client: row.client, host: row.host, pid: Number(row.pid), label: row.label ?? undefined },
    mode: row.mode,
    weight: Number(row.weight),
    permits: row.permits === null ? undefined : Number(row.permits),
    seq: row.seq,
    sinceUs: Number(row.since),
    untilUs: Number(row.until),
    metadata: row.metadata ?? undefined,
    process: row.process,
    slot: Number(row.slot),
  };
}

/** A new entry as it stands in its queue from now on. */
export function standingFor(
  asked: NewEntry,
  seq: bigint,
  nowUs: number,
  owner: Pick<Standing, "process" | "slot">,
): Standing {
  const { id, mode, weight, permits, metadata } = asked;
  const untilUs = nowUs + Math.floor(asked.ttlMs * 1000);
  return { id, owner: asked.owner, mode, weight, permits, seq, sinceUs: nowUs, untilUs, metadata, ...owner };
}

/** Writes an entry, by either of the statements for that; gives how many rows were written. */
export function insert(statement: Statement, queue: string, entry: Standing, isBehind: boolean): number {
  const { id, owner, mode, weight, permits, seq, sinceUs, untilUs, metadata, process, slot } = entry;
  return statement.run(
    queue,
    isBehind ? 1 : 0,
    seq,
    id,
    mode,
    weight,
    permits ?? null,
    sinceUs,
    untilUs,
    process,
    slot,
    owner.client,
    owner.host,
    owner.pid,
    owner.label ?? null,
    metadata ?? null,
  );
}

/** The entry as the seam shows it, at a moment of the machine's clock. */
export function entryOf(standing: Standing, nowUs: number): Entry {
  const { id, owner, mode, weight, permits, seq, sinceUs, untilUs, metadata } = standing;
  return {
    id,
    owner,
    mode,
    weight,
    permits,
    seq,
    expiresInMs: Math.max(0, (untilUs - nowUs) / 1000),
    ageMs: Math.max(0, (nowUs - sinceUs) / 1000),
    metadata,
  };
}
