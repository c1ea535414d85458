/**
 * The text form of a history: one JSON object per line, bigints as decimal text. Reads strictly, so that a misspelt
 * field is an error and not a missing fact; whether the events make sense together is left to trace.ts.
 */
import { HistoryError, type HistoryEvent, type Operation, type Phase } from "./history.ts";

const OPERATIONS: ReadonlySet<unknown> = new Set<Operation>([
  "acquire",
  "try",
  "renew",
  "release",
  "evict",
  "write",
  "read",
  "query",
  "lost",
  "held",
  "cancel",
  "guard",
  "fault",
  "end",
]);
const PHASES: ReadonlySet<unknown> = new Set<Phase>(["invoke", "ok", "fail", "info"]);
const MODES: ReadonlySet<unknown> = new Set<HistoryEvent["mode"]>(["exclusive", "shared"]);

/** How a field is read: what it gives for a good value, undefined for a bad one, and what a good one looks like. */
interface Field {
  readonly read: (value: unknown) => unknown;
  readonly wanted: string;
}

const oneOf = (allowed: ReadonlySet<unknown>): Field => ({
  read: (value) => (allowed.has(value) ? value : undefined),
  wanted: `one of ${[...allowed].join(", ")}`,
});
const plain: Field = { read: (value) => (typeof value === "string" ? value : undefined), wanted: "text" };
const flag: Field = {
  read: (value) => (typeof value === "boolean" ? value : undefined),
  wanted: "a boolean",
};
const count: Field = {
  read: (value) => (isCount(value) ? value : undefined),
  wanted: "a whole number that is not negative",
};
const duration: Field = {
  read: (value) => (typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined),
  wanted: "a number of milliseconds that is not negative",
};
const decimal: Field = { read: readDecimal, wanted: 'decimal text such as "42"' };
const decimals: Field = {
  read: (value) => readList(value, readDecimal),
  wanted: 'a list of decimal texts such as ["42"]',
};
const texts: Field = {
  read: (value) => readList(value, (item) => (typeof item === "string" ? item : undefined)),
  wanted: "a list of texts",
};
const counts: Field = {
  read: (value) => (isRecord(value) && Object.values(value).every(isCount) ? value : undefined),
  wanted: "an object of whole numbers",
};

// A record over all keys, so that a new field of HistoryEvent cannot be forgotten here.
const FIELD_OF: Readonly<Record<keyof HistoryEvent, Field>> = {
  i: count,
  t: decimal,
  proc: plain,
  f: oneOf(OPERATIONS),
  type: oneOf(PHASES),
  lock: plain,
  attempt: plain,
  call: count,
  owner: plain,
  token: decimal,
  ttl: duration,
  sentAt: decimal,
  validUntil: decimal,
  mode: oneOf(MODES),
  weight: count,
  permits: count,
  steal: flag,
  behind: plain,
  parent: plain,
  busy: flag,
  holders: decimals,
  waiters: decimals,
  resource: plain,
  value: plain,
  values: texts,
  backend: plain,
  fault: plain,
  target: plain,
  leaks: counts,
  pending: count,
  detail: plain,
};
const FIELDS: ReadonlyMap<string, Field> = new Map(Object.entries(FIELD_OF));

/**
 * Reads a history. Throws a HistoryError that names the line at the first one that is not an event, is out of
 * sequence or was cut off. Blank lines are skipped.
 */
export function parseHistory(text: string): HistoryEvent[] {
  const events: HistoryEvent[] = [];
  let line = 0;
  for (let from = 0; from < text.length;) {
    const newline = text.indexOf("\n", from);
    const until = newline === -1 ? text.length : newline;
    const source = text.slice(from, until).trim();
    from = until + 1;
    line += 1;
    if (source === "") continue;
    const event = parseLine(source, line);
    if (event.i !== events.length) {
      throw new HistoryError(`line ${line}: expected event ${events.length} but found ${event.i}`);
    }
    events.push(event);
  }
  return events;
}

/** Writes a history as parseHistory reads it. */
export function formatHistory(events: readonly HistoryEvent[]): string {
  return events.map((event) => `${formatEvent(event)}\n`).join("");
}

/** Writes one event, without a line break. */
export function formatEvent(event: HistoryEvent): string {
  return JSON.stringify(event, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value));
}

function parseLine(source: string, line: number): HistoryEvent {
  let raw: unknown;
  try {
    raw = JSON.parse(source);
  } catch (cause) {
    throw new HistoryError(`line ${line}: not JSON, or cut off`, { cause });
  }
  if (!isRecord(raw)) throw new HistoryError(`line ${line}: not an object`);
  for (const key of Object.keys(raw)) {
    const field = FIELDS.get(key);
    if (field === undefined) throw new HistoryError(`line ${line}: unknown field ${JSON.stringify(key)}`);
    const value = field.read(raw[key]);
    if (value === undefined) throw new HistoryError(`line ${line}: ${key} must be ${field.wanted}`);
    raw[key] = value;
  }
  if (!hasRequired(raw)) throw new HistoryError(`line ${line}: i, t, proc, f and type are required`);
  return raw;
}

/** Every field that is there was read by its Field, so only presence is left to check. */
function hasRequired(raw: object): raw is HistoryEvent {
  return "i" in raw && "t" in raw && "proc" in raw && "f" in raw && "type" in raw;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function readDecimal(value: unknown): bigint | undefined {
  return typeof value === "string" && /^(0|[1-9]\d{0,77})$/.test(value) ? BigInt(value) : undefined;
}

function readList<T>(value: unknown, read: (item: unknown) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const items: T[] = [];
  for (const item of value) {
    const good = read(item);
    if (good === undefined) return undefined;
    items.push(good);
  }
  return items;
}
