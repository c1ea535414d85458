/** Where the file is, whether it may be used, and how it is opened: everything is refused here, before anything is queued. */
import { accessSync, closeSync, constants, openSync, realpathSync, statfsSync, statSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { invalid, type LockError } from "../../core/errors.ts";
import { makeFolders } from "../../core/folders.ts";
import { tooBusy } from "./busy.ts";
import type { Database, Driver } from "./driver.ts";
import { failureOf, isBusy, refusal } from "./failure.ts";
import type { Machine } from "./machine.ts";
import { applicationId, checkpointPages, pageSize, schema, schemaVersion } from "./schema.ts";

/**
 * Where the locks of a user are kept unless a path is given: in the directory for state. Not in that for run time,
 * since jobs of cron have none and would not meet the others.
 */
export function defaultPath(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = homeOfUser(),
): string {
  const { XDG_STATE_HOME: state, LOCALAPPDATA: local } = env;
  const folders: Partial<Record<NodeJS.Platform, string>> = {
    darwin: join(home, "Library", "Application Support"),
    win32: local ?? join(home, "AppData", "Local"),
  };
  const xdg = state?.startsWith("/") ? state : join(home, ".local", "state");
  return join(folders[platform] ?? xdg, "holdfast", "locks.db");
}

/** An empty HOME would make a path of it that depends on where a process runs. */
function homeOfUser(): string {
  return homedir() || userInfo().homedir;
}

/** The path that a URL names; undefined for the default. */
export function pathOfUrl(url: string): string | undefined {
  const path = url.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
  if (path.startsWith("//"))
    throw invalid("a URL of SQLite has no host: it looks like sqlite:/path or sqlite:path");
  // Shells replace it in an assignment and not in an option: the two must not be two files.
  return path.replace(/^~(?=\/|$)/, homeOfUser) || undefined;
}

/** Types of file systems of Linux on which SQLite's locks or its shared memory do not work between machines. */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB 2"],
  [0x01021997, "9P"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x01161970, "GFS2"],
  [0x7461636f, "OCFS2"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x19830326, "BeeGFS"],
  [0x47504653, "GPFS"],
  [0xaad7aaea, "PanFS"],
  [0x786f4256, "VirtualBox shared folder"],
]);

/** The name of the network file system of a given type; undefined if it is none or cannot be told. */
export function networkFileSystem(type: number): string | undefined {
  // The type is a signed number where the system's word is short.
  return process.platform === "linux" ? networkFileSystems.get(type >>> 0) : undefined;
}

/** The one path of a file that may have several names; makes its directory and the file, for this user only. */
export function prepareFile(path: string): string {
  if (path.includes("\0")) throw invalid("the path of a SQLite file must not contain a NUL character");
  const given = resolve(path);
  try {
    makeFolders(dirname(given), 0o700);
    const directory = realpathSync(dirname(given));
    const name = networkFileSystem(statfsSync(directory).type);
    if (name !== undefined) {
      const why = "processes of other machines could not be kept out, and the file could be damaged";
      throw refusal(
        "LOCK_UNSUPPORTED",
        `the file ${given} is on a network file system (${name}): ${why}; give a path on a local disk`,
      );
    }
    accessSync(directory, constants.W_OK | constants.X_OK);
    const file = join(directory, basename(given));
    createFile(file);
    if (!statSync(file).isFile()) {
      throw refusal("LOCK_UNSUPPORTED", `the path ${given} is there and is not a file: give another path`);
    }
    accessSync(file, constants.R_OK | constants.W_OK);
    return realpathSync(file);
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    const todo = 'change the permissions, or give another path: connect("sqlite:/path")';
    throw refusal(
      "LOCK_UNAVAILABLE",
      `the file ${given} cannot be made or used (${error.message}): ${todo}`,
      error,
    );
  }
}

/** SQLite gives its other files the mode of this one. A file that is there is not opened: closing it would end its locks. */
function createFile(file: string): void {
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

/** Opens a file that was prepared, makes or checks its tables, and begins the run of this machine in it. */
export async function openFile(
  path: string,
  driver: Driver,
  machine: Machine,
  patienceMs: number,
): Promise<Database> {
  const until = performance.now() + patienceMs;
  for (;;) {
    let db: Database | undefined;
    try {
      db = driver.open(path);
      setUp(db, path, machine);
      return db;
    } catch (error) {
      // Whatever was begun on this connection ends with it.
      db?.close();
      if (isBusy(error) && performance.now() < until) {
        await sleep(Math.random() * 5);
        continue;
      }
      if (!isBusy(error)) throw db === undefined ? notOpened(error, path) : failureOf(error, path);
      throw tooBusy(path, patienceMs, error);
    }
  }
}

/** Nothing can have happened in a file that was not opened, whatever the library says about it. */
function notOpened(error: unknown, path: string): LockError {
  const failure = failureOf(error, path);
  if (failure.code !== "LOCK_OUTCOME_UNKNOWN") return failure;
  const todo = "check that its directory exists and can be written, and that the path is not too long";
  return refusal("LOCK_UNAVAILABLE", `the file ${path} cannot be opened: ${todo}`, error);
}

function setUp(db: Database, path: string, machine: Machine): void {
  db.exec("PRAGMA busy_timeout = 0");
  if (isEmpty(db, path)) db.exec(`PRAGMA page_size = ${pageSize}`);
  const mode = db.prepare<{ journal_mode: string }>("PRAGMA journal_mode = WAL").get()?.journal_mode;
  if (mode !== "wal") {
    throw refusal(
      "LOCK_UNSUPPORTED",
      `the file ${path} cannot be used by several processes here (journal mode ${mode}): give a path on a local disk`,
    );
  }
  db.exec(`PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${checkpointPages}`);
  db.exec("BEGIN IMMEDIATE");
  try {
    if (checkTables(db, path)) db.exec(schema);
    beginBoot(db, machine);
    db.exec("COMMIT");
  } catch (error) {
    try {
      db.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
    throw error;
  }
}

/** The same outside of a transaction: all that is looked at has to be of one moment, since another process may be making the tables. */
function isEmpty(db: Database, path: string): boolean {
  db.exec("BEGIN");
  const empty = checkTables(db, path);
  db.exec("ROLLBACK");
  return empty;
}

/** Whether the file is empty. Refuses one that is not ours, or of another version. */
function checkTables(db: Database, path: string): boolean {
  const { application_id: application } =
    db.prepare<{ application_id: bigint }>("PRAGMA application_id").get() ?? {};
  const { user_version: version = 0n } =
    db.prepare<{ user_version: bigint }>("PRAGMA user_version").get() ?? {};
  const { count } = db.prepare<{ count: bigint }>("SELECT count(*) AS count FROM sqlite_schema").get() ?? {};
  if (application === 0n && version === 0n && count === 0n) return true;
  if (application !== BigInt(applicationId)) {
    throw refusal("LOCK_UNSUPPORTED", `the file ${path} belongs to another program: give another path`);
  }
  if (version === BigInt(schemaVersion)) return false;
  const [age, todo] =
    version > BigInt(schemaVersion)
      ? ["a newer", "update holdfast"]
      : ["an older", "end the processes that use it and delete it, since it holds nothing but locks"];
  throw refusal(
    "LOCK_UNSUPPORTED",
    `the file ${path} was made by ${age} holdfast (version ${version} of its tables, this one knows ` +
      `${schemaVersion}): ${todo}, or give another path`,
  );
}

/**
 * Entries of an earlier run of the machine are dead. And a power cut may have lost the last commits, so seqs go on above
 * the ceiling. Where the system does not name its runs, to us or to who was here before, a clock that went back shows a
 * new one; one that is missed leaves entries to their ttl at the worst, and seqs go on above the ceiling in any case.
 */
function beginBoot(db: Database, machine: Machine): void {
  const { bootId } = machine;
  const { boot = null, clock = 0n } =
    db.prepare<{ boot: string | null; clock: bigint }>("SELECT boot, clock FROM store").get() ?? {};
  if (bootId !== null && boot === bootId) return;
  const now = machine.nowUs();
  const isAnother = bootId !== null && boot !== null;
  if (isAnother || now < clock) db.exec("DELETE FROM entries WHERE queue <> ''; DELETE FROM evicted");
  db.exec("UPDATE entries SET until = max(until, since) WHERE queue = '' AND seq = 0");
  db.prepare("UPDATE store SET boot = ?1, clock = ?2").run(bootId, now);
}
