/** The messages of ZooKeeper's wire, one function for each; sending them is left to the connection. */
import { MalformedFrame, refusal, type ZooError } from "./errors.ts";
import { JuteReader, JuteWriter } from "./jute.ts";

/** What the server calls each kind of request. */
export const ops = {
  create: 1,
  create2: 15,
  createContainer: 19,
  createTtl: 21,
  delete: 2,
  exists: 3,
  getData: 4,
  getChildren2: 12,
  sync: 9,
  ping: 11,
  check: 13,
  multi: 14,
  auth: 100,
  setWatches2: 105,
  closeSession: -11,
} as const;

/** Numbers of messages that are not answers in turn. */
export const xids = { event: -1, ping: -2, auth: -4, setWatches: -8 } as const;

/** What the server knows of a node; zxids are its counts of transactions. */
export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** Milliseconds since 1970 by the server's clock. */
  readonly ctime: bigint;
  readonly mtime: bigint;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  /** The session on which the node hangs; 0n if it does not hang on one. */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly pzxid: bigint;
}

/** Who may do what: `perms` is a sum of read 1, write 2, create 4, delete 8, admin 16. */
export interface Acl {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

/** How a node lives. */
export type CreateMode = "persistent" | "ephemeral" | "ephemeral-sequential" | "container" | "ttl";

const flags: Readonly<Record<CreateMode, number>> = {
  persistent: 0,
  ephemeral: 1,
  "ephemeral-sequential": 3,
  container: 4,
  ttl: 5,
};

/** What is asked of create. */
export interface NewNode {
  readonly path: string;
  readonly data: Uint8Array;
  readonly acl: readonly Acl[];
  readonly mode: CreateMode;
  /** For mode "ttl": how long the node lives unchanged and without children, in milliseconds. */
  readonly ttlMs?: number;
}

/** One step of a multi. */
export type MultiOp =
  | { readonly op: "create"; readonly node: NewNode }
  | { readonly op: "delete"; readonly path: string; readonly version?: number }
  | { readonly op: "check"; readonly path: string; readonly version?: number };

/** What became of one step of a multi. */
export type MultiResult =
  | { readonly op: "create"; readonly path: string; readonly stat: Stat | null }
  | { readonly op: "delete" }
  | { readonly op: "check" }
  | { readonly op: "error"; readonly error: ZooError };

/** What a server tells without being asked. */
export interface WatchEvent {
  readonly type: "created" | "deleted" | "changed" | "children" | "other";
  readonly path: string;
}

const eventTypes = new Map<number, WatchEvent["type"]>([
  [1, "created"],
  [2, "deleted"],
  [3, "changed"],
  [4, "children"],
]);

/** The first message of a connection. */
export function connectRequest(asked: {
  lastZxid: bigint;
  sessionMs: number;
  sessionId: bigint;
  password: Uint8Array;
}): Buffer {
  return new JuteWriter()
    .int(0)
    .long(asked.lastZxid)
    .int(asked.sessionMs)
    .long(asked.sessionId)
    .bytes(asked.password)
    .flag(false)
    .frame();
}

/** What a server answers to the first message; a session that has expired comes back with 0 ms. */
export interface Welcome {
  readonly sessionMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
}

export function readWelcome(frame: Buffer): Welcome {
  const reader = new JuteReader(frame);
  reader.int();
  return { sessionMs: reader.int(), sessionId: reader.long(), password: reader.bytes() };
}

export function readHeader(reader: JuteReader): { xid: number; zxid: bigint; code: number } {
  return { xid: reader.int(), zxid: reader.long(), code: reader.int() };
}

export function readEvent(reader: JuteReader): WatchEvent {
  const type = eventTypes.get(reader.int()) ?? "other";
  reader.int();
  return { type, path: reader.text() };
}

export function opOf({ mode }: NewNode): number {
  if (mode === "container") return ops.createContainer;
  return mode === "ttl" ? ops.createTtl : ops.create2;
}

export function writeNewNode(writer: JuteWriter, { path, data, acl, mode, ttlMs }: NewNode): JuteWriter {
  writer.text(path).bytes(data);
  writer.list(acl, ({ perms, scheme, id }) => writer.int(perms).text(scheme).text(id));
  writer.int(flags[mode]);
  return mode === "ttl" ? writer.long(BigInt(Math.ceil(ttlMs ?? 0))) : writer;
}

export function readCreated(reader: JuteReader): { path: string; stat: Stat } {
  return { path: reader.text(), stat: readStat(reader) };
}

export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctime: reader.long(),
    mtime: reader.long(),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.long(),
    dataLength: reader.int(),
    numChildren: reader.int(),
    pzxid: reader.long(),
  };
}

export function readData(reader: JuteReader): { data: Buffer; stat: Stat } {
  return { data: reader.bytes(), stat: readStat(reader) };
}

export function readChildren(reader: JuteReader): { children: string[]; stat: Stat } {
  return { children: reader.list(() => reader.text()), stat: readStat(reader) };
}

const endOfMulti = -1;

export function writeMulti(writer: JuteWriter, steps: readonly MultiOp[]): JuteWriter {
  for (const step of steps) {
    const op = step.op === "create" ? opOf(step.node) : { delete: ops.delete, check: ops.check }[step.op];
    writer.int(op).flag(false).int(-1);
    if (step.op === "create") writeNewNode(writer, step.node);
    else writer.text(step.path).int(step.version ?? -1);
  }
  return writer.int(endOfMulti).flag(true).int(-1);
}

/** The results of a multi; where one step failed none was done, and each says why or that another did. */
export function readMulti(reader: JuteReader): MultiResult[] {
  const results: MultiResult[] = [];
  for (;;) {
    const [op, done] = [reader.int(), reader.flag()];
    reader.int();
    if (done) return results;
    results.push(readMultiResult(reader, op));
  }
}

function readMultiResult(reader: JuteReader, op: number): MultiResult {
  switch (op) {
    case ops.create:
      // So are containers and nodes with a ttl reported.
      return { op: "create", path: reader.text(), stat: null };
    case ops.create2:
      return { op: "create", ...readCreated(reader) };
    case ops.delete:
      return { op: "delete" };
    case ops.check:
      return { op: "check" };
    case endOfMulti:
      return { op: "error", error: refusal(reader.int(), "a step of a multi") };
    default:
      throw new MalformedFrame(`a result of an unknown kind: ${op}`);
  }
}
