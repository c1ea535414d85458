/** The SQLite libraries that Node may have, behind one small interface; what is asked of them is written in statements.ts. */
import { createRequire } from "node:module";
import { LockError } from "../../core/errors.ts";
import { isBusy } from "./failure.ts";
import { identityOf } from "./identity.ts";

/** What can be bound to a statement. */
export type Value = string | number | bigint | null;

/** A prepared statement whose integers are read as bigint. Its text decides what a Row has. */
export interface Statement<Row = object> {
  /**
   * Gives how many rows were changed. Outside a transaction, only for statements that change nothing if all their values
   * are null: see Jam.
   */
  run(...values: Value[]): number;
  /** The first row. Only for reads and inside a transaction: outside, an error of the commit would go unseen. */
  get(...values: Value[]): Row | undefined;
  all(...values: Value[]): Row[];
}

/** One connection to a file. */
export interface Database {
  exec(sql: string): void;
  prepare<Row = object>(sql: string): Statement<Row>;
  /** Ends the use of a connection on which nothing is under way; the next who opens the same file may get it again. */
  rest(): void;
  close(): void;
}

/** The names of the libraries, in the order in which they are tried. */
export const driverNames = ["node:sqlite", "libsql", "better-sqlite3"] as const;

/** The name of a library. */
export type DriverName = (typeof driverNames)[number];

/** A library that was found. */
export interface Driver {
  readonly name: DriverName;
  open(path: string): Database;
}

interface NativeStatement<Row> {
  run(...values: Value[]): { readonly changes: number | bigint };
  get(...values: Value[]): Row | undefined;
  all(...values: Value[]): Row[];
  setReadBigInts?(on: boolean): unknown;
  safeIntegers?(on: boolean): unknown;
}

interface Native {
  exec(sql: string): unknown;
  prepare<Row>(sql: string): NativeStatement<Row>;
  close(): unknown;
}

type NativeClass = new (path: string) => Native;

const require = createRequire(import.meta.url);

/** The library that was asked for, or the first that there is. Throws LOCK_UNSUPPORTED if there is none. */
export function findDriver(wanted?: DriverName): Driver {
  const reasons: string[] = [];
  for (const name of wanted === undefined ? driverNames : [wanted]) {
    try {
      const found = name === "node:sqlite" ? builtIn() : require(name);
      if (isDatabaseClass(found)) return { name, open: (path) => openBy(name, found, path) };
      reasons.push(`${name} is not there`);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      reasons.push(`${name}: ${text.split("\n", 1)[0]}`);
    }
  }
  throw new LockError(
    "LOCK_UNSUPPORTED",
    `Node ${process.versions.node} has no SQLite here (${reasons.join("; ")}): ` +
      "use Node 22.13 or newer, which has it built in, or run `npm install libsql`",
    { backend: "sqlite" },
  );
}

/** The library inside Node, from 22.13 on; undefined before. */
function builtIn(): unknown {
  // Node 22 warns while the module is loaded. That is one call, during which nothing else can warn: only this warning is
  // kept back, and the program's own function is in its place again before anybody can see that it was not.
  const own = Object.getOwnPropertyDescriptor(process, "emitWarning") ?? {};
  Object.defineProperty(process, "emitWarning", { ...own, value: () => {} });
  try {
    const found: unknown = process.getBuiltinModule?.("node:sqlite");
    return typeof found === "object" && found !== null && "DatabaseSync" in found
      ? found.DatabaseSync
      : undefined;
  } finally {
    Object.defineProperty(process, "emitWarning", own);
  }
}

function isDatabaseClass(found: unknown): found is NativeClass {
  return typeof found === "function";
}

/**
 * libsql leaves a statement that found the file busy active, and whatever another statement writes then is not committed.
 * So before anything else runs, that statement runs to its end, with values with which it changes nothing.
 */
class Jam {
  readonly #native: Native;
  #stuck: { readonly statement: NativeStatement<unknown>; readonly free: () => void } | null = null;

  constructor(native: Native) {
    this.#native = native;
  }

  /** Runs one way of using a statement. Throws that the file is busy also if it still is for the one that is stuck. */
  run<T>(statement: NativeStatement<unknown>, sql: string, values: readonly Value[], work: () => T): T {
    if (this.#stuck !== null && this.#stuck.statement !== statement) this.free();
    try {
      const result = work();
      this.#stuck = null;
      return result;
    } catch (error) {
      if (isBusy(error)) this.#stuck = { statement, free: () => this.#end(statement, sql, values) };
      throw error;
    }
  }

  free(): void {
    this.#stuck?.free();
    this.#stuck = null;
  }

  #end(statement: NativeStatement<unknown>, sql: string, values: readonly Value[]): void {
    statement.run(...values.map(() => null));
    if (sql.startsWith("BEGIN")) this.#native.exec("ROLLBACK");
  }
}

/** libsql mixes up the values of calls if one statement is used in two ways, so each way has a statement of its own. */
class Prepared<Row> implements Statement<Row> {
  readonly #native: Native;
  readonly #sql: string;
  readonly #jam: Jam | null;
  #run: NativeStatement<Row> | undefined;
  #get: NativeStatement<Row> | undefined;
  #all: NativeStatement<Row> | undefined;

  constructor(native: Native, sql: string, jam: Jam | null) {
    this.#native = native;
    this.#sql = sql;
    this.#jam = jam;
  }

  run(...values: Value[]): number {
    const statement = (this.#run ??= this.#prepare());
    return this.#unjammed(statement, values, () => Number(statement.run(...values).changes));
  }

  get(...values: Value[]): Row | undefined {
    const statement = (this.#get ??= this.#prepare());
    return this.#unjammed(statement, values, () => statement.get(...values));
  }

  all(...values: Value[]): Row[] {
    const statement = (this.#all ??= this.#prepare());
    return this.#unjammed(statement, values, () => statement.all(...values));
  }

  #unjammed<T>(statement: NativeStatement<Row>, values: readonly Value[], work: () => T): T {
    return this.#jam === null ? work() : this.#jam.run(statement, this.#sql, values, work);
  }

  #prepare(): NativeStatement<Row> {
    const statement = this.#native.prepare<Row>(this.#sql);
    if (statement.setReadBigInts !== undefined) statement.setReadBigInts(true);
    else statement.safeIntegers?.(true);
    return statement;
  }
}

/**
 * libsql keeps the files of a connection open until its statements are collected as garbage, and that takes no notice of
 * descriptors: whoever connected again and again would run out of them. So some connections are kept, to be used again.
 */
const resting = new Map<string, Database>();
const mostResting = 8;

function openBy(name: DriverName, found: NativeClass, path: string): Database {
  if (name !== "libsql") return opened(new found(path), null, (db) => db.close());
  const file = identityOf(path);
  const rested = file === null ? undefined : resting.get(file);
  if (file !== null && rested !== undefined) {
    resting.delete(file);
    return rested;
  }
  const native = new found(path);
  return opened(native, new Jam(native), (db) => {
    if (file === null || resting.has(file)) return db.close();
    const [eldest] = resting;
    if (eldest !== undefined && resting.size >= mostResting) {
      resting.delete(eldest[0]);
      eldest[1].close();
    }
    resting.set(file, db);
  });
}

function opened(native: Native, jam: Jam | null, rest: (db: Database) => void): Database {
  const db: Database = {
    exec: (sql) => {
      jam?.free();
      native.exec(sql);
    },
    prepare: (sql) => new Prepared(native, sql, jam),
    rest: () => rest(db),
    close: () => {
      native.close();
    },
  };
  return db;
}
