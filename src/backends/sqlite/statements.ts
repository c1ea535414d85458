/** Every statement that is sent to the file, prepared once for a connection, and the rows that they give. */
import type { Entry, EntryMode, NewEntry, Owner } from "../../core/backend.ts";
import type { Database, Statement } from "./driver.ts";

/** An entry as the file has it. */
interface Row {
  readonly seq: bigint;
  readonly id: string;
  readonly since: bigint;
  readonly until: bigint;
  readonly process: string;
  readonly owner: string;
  readonly mode: EntryMode;
  readonly weight: bigint;
  readonly permits: bigint | null;
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

/** What every entry has, and what most need not say. */
const common = "seq, id, since, until, process, owner";
const special = "mode, weight, permits, metadata";
const columns = `${common}, ${special}`;

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
  /** The same for a writer of weight 1, outside of a semaphore and without metadata. */
  readonly insertPlainAlone: Statement;
  /** Takes out an entry with nobody behind it, if it is live. */
  readonly deleteLast: Statement;
  /**
   * Takes out a writer outside of a semaphore, if it is live, and gives who is behind it: its process and the text of a
   * message to it, if it is another such writer and the first now; nothing but "" if not; null if nobody is.
   */
  readonly deleteWriter: Statement<{ readonly next: string | null }>;
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
    nextSeq: db.prepare("SELECT max(seq + 1, ?1) AS seq, ceiling FROM counter"),
    raiseCeiling: db.prepare("UPDATE entries SET since = max(since, ?1) WHERE queue = '' AND seq = 0"),
    insertAlone: db.prepare(alone(columns, 11)),
    insertPlainAlone: db.prepare(alone(common, 7)),
    deleteLast: db.prepare(
      `DELETE FROM entries WHERE queue = ?1 AND seq = ?2 AND until > ?3
       AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = ?1 AND seq > ?2)`,
    ),
    // What is returned is the same whether it is worked out before the row goes or after.
    deleteWriter: db.prepare(
      `DELETE FROM entries WHERE queue = ?1 AND seq = ?2 AND until > ?3 AND mode = 'write' AND permits IS NULL
       RETURNING (SELECT CASE WHEN mode = 'write' AND permits IS NULL AND until > ?3
         AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = ?1 AND seq < ?2)
         THEN process || ' ' || seq || ' ' || since || ' ' || until ELSE '' END
         FROM entries WHERE queue = ?1 AND seq > ?2 ORDER BY seq LIMIT 1) AS next`,
    ),
    insert: db.prepare(
      `INSERT INTO entries (queue, ${columns}, behind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
    processes: db.prepare("SELECT DISTINCT process FROM entries WHERE queue <> ''"),
    processesAhead: db.prepare("SELECT DISTINCT process FROM entries WHERE queue = ?1 AND seq < ?2"),
    queues: db.prepare("SELECT DISTINCT queue FROM entries WHERE queue <> ''"),
    expiredQueues: db.prepare("SELECT DISTINCT queue FROM entries WHERE queue <> '' AND until <= ?1"),
    renew: db.prepare(
      `UPDATE entries SET until = max(until, ?1)
       WHERE queue = ?2 AND seq = ?3 AND id = ?4 AND until > ?5 RETURNING until`,
    ),
    evict: db.prepare("INSERT OR REPLACE INTO evicted VALUES (?1, ?2)"),
    wasEvicted: db.prepare("SELECT 1 FROM evicted WHERE seq = ?1 AND until > ?2"),
    forgetEvicted: db.prepare("DELETE FROM evicted WHERE until <= ?1"),
    setClock: db.prepare("UPDATE store SET clock = ?1 WHERE clock <= ?2"),
  };
}

/** A statement that appends an entry with the given columns to a queue if that is empty. */
function alone(given: string, values: number): string {
  const numbered = Array.from({ length: values }, (_, index) => `?${index + 1}`).join(", ");
  return `INSERT INTO entries (queue, ${given}) SELECT ${numbered} FROM counter
    WHERE seq < ?2 AND ceiling >= ?2 AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = ?1)`;
}

/** What a row says. */
export function standingOf(row: Row): Standing {
  const [slot, client, host, pid, label]: OwnerText = JSON.parse(row.owner);
  return {
    id: row.id,
    owner: { client, host, pid, label },
    mode: row.mode,
    weight: Number(row.weight),
    permits: row.permits === null ? undefined : Number(row.permits),
    seq: row.seq,
    sinceUs: Number(row.since),
    untilUs: Number(row.until),
    metadata: row.metadata ?? undefined,
    process: row.process,
    slot,
  };
}

type OwnerText = [slot: number, client: string, host: string, pid: number, label?: string];

const ownerTexts = new WeakMap<Owner, { readonly slot: number; readonly text: string }>();

/** An owner as the file has it. A client gives the same object each time. */
function ownerText(owner: Owner, slot: number): string {
  const known = ownerTexts.get(owner);
  if (known?.slot === slot) return known.text;
  const { client, host, pid, label } = owner;
  const parts: OwnerText = [slot, client, host, pid];
  if (label !== undefined) parts.push(label);
  const text = JSON.stringify(parts);
  ownerTexts.set(owner, { slot, text });
  return text;
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

/** Appends an entry to a queue if that is empty; gives how many rows were written. */
export function insertAlone(statements: Statements, queue: string, entry: Standing): number {
  const { id, owner, mode, weight, permits, seq, sinceUs, untilUs, metadata, process, slot } = entry;
  const text = ownerText(owner, slot);
  const isPlain = mode === "write" && weight === 1 && permits === undefined && metadata === undefined;
  return isPlain
    ? statements.insertPlainAlone.run(queue, seq, id, sinceUs, untilUs, process, text)
    : statements.insertAlone.run(
        queue,
        seq,
        id,
        sinceUs,
        untilUs,
        process,
        text,
        mode,
        weight,
        permits ?? null,
        metadata ?? null,
      );
}

/** Appends an entry to a queue. */
export function insert(statements: Statements, queue: string, entry: Standing, isBehind: boolean): void {
  const { id, owner, mode, weight, permits, seq, sinceUs, untilUs, metadata, process, slot } = entry;
  statements.insert.run(
    queue,
    seq,
    id,
    sinceUs,
    untilUs,
    process,
    ownerText(owner, slot),
    mode,
    weight,
    permits ?? null,
    metadata ?? null,
    isBehind ? 1 : 0,
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
