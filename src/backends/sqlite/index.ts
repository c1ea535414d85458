/** The SQLite backend: locks among all processes of a machine that use one file. The default of `connect`. */
import { invalid } from "../../core/errors.ts";
import { SqliteBackend } from "./backend.ts";
import { type Driver, type DriverName, findDriver } from "./driver.ts";
import { defaultPath, openFile, prepareFile } from "./file.ts";
import { identityOf } from "./identity.ts";
import { type Machine, thisMachine } from "./machine.ts";
import { SqliteStore } from "./store.ts";

export { SqliteBackend, sqliteTraits } from "./backend.ts";
export type { DriverName } from "./driver.ts";
/** @internal For connect. */
export { pathOfUrl } from "./file.ts";

/** Options of sqliteBackend. */
export interface SqliteOptions {
  /**
   * The file; it and its directory are made if they are missing. All who give the same file share their locks.
   * @default holdfast/locks.db in the user's directory for state
   */
  readonly path?: string | undefined;
  /**
   * Which library opens the file.
   * @default node:sqlite where Node has it, else libsql, else better-sqlite3
   */
  readonly driver?: DriverName | undefined;
  /**
   * How long a call goes on trying while other processes write, in milliseconds; then it fails and nothing was done.
   * @default 5000
   */
  readonly patienceMs?: number | undefined;
}

interface Shared {
  readonly driver: Driver;
  readonly store: Promise<SqliteStore>;
  clients: number;
}

/** The files that this thread has open, by what tells them apart: one connection each, whatever the number of clients. */
const shared = new Map<string | null, Shared>();

/** A client of a file. Rejects with a LockError that says what to do if the file cannot be used. */
export async function sqliteBackend(options: SqliteOptions = {}): Promise<SqliteBackend> {
  return open(options, thisMachine());
}

/** @internal The same on a machine of which a test says what it is. */
export async function open(options: SqliteOptions, machine: Machine): Promise<SqliteBackend> {
  const { patienceMs = 5_000 } = options;
  const driver = findDriver(options.driver);
  const path = prepareFile(options.path ?? defaultPath());
  const file = identityOf(path);
  const used = shared.get(file) ?? {
    driver,
    store: openFile(path, driver, machine, patienceMs).then(
      (db) => new SqliteStore(path, file, driver.name, db, machine, patienceMs),
    ),
    clients: 0,
  };
  // Two libraries in one process would undo each other's locks on the file: closing it ends those of the whole process.
  if (used.driver.name !== driver.name) {
    throw invalid(`the file ${path} is open in this process by ${used.driver.name}, not ${driver.name}`);
  }
  shared.set(file, used);
  used.clients += 1;
  const leave = async (): Promise<void> => {
    used.clients -= 1;
    if (used.clients > 0) return;
    if (shared.get(file) === used) shared.delete(file);
    await (await used.store).close();
  };
  try {
    return new SqliteBackend(await used.store, leave);
  } catch (error) {
    if (shared.get(file) === used) shared.delete(file);
    throw error;
  }
}
