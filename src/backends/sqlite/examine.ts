/** What can be seen of a file and its state without changing it: for `holdfast doctor`. */
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Finding } from "../../core/backend.ts";
import type { Database } from "./driver.ts";
import { networkFileSystem } from "./file.ts";
import { isGone, type Machine } from "./machine.ts";
import { schemaVersion } from "./schema.ts";

/** Less free space than this is a warning, in bytes: the log beside the file grows to about 4 MB. */
const littleSpace = 64 * 2 ** 20;

/** FUSE: what is behind it, a disk or a network, cannot be told. */
const fuse = 0x65735546;

/** Looks at a file that is open. It is never opened a second time: closing that would end the locks that SQLite has on it. */
export function examineFile(
  path: string,
  driver: string,
  db: Database,
  machine: Machine,
): readonly Finding[] {
  return [
    library(driver, db),
    ...file(path),
    fileSystem(path),
    journal(db),
    tables(db),
    damage(db, path),
    ...entries(db, machine),
    boot(machine),
  ];
}

function ok(about: string, seen: string): Finding {
  return { level: "ok", about, seen };
}

function library(driver: string, db: Database): Finding {
  const { version } = db.prepare<{ version: string }>("SELECT sqlite_version() AS version").get() ?? {};
  return ok("library", `${driver} with SQLite ${version}, Node ${process.versions.node}`);
}

function file(path: string): readonly Finding[] {
  const { size, mode, uid, nlink } = statSync(path);
  const about = "file";
  const shown = `${path}, ${size} bytes, mode ${(mode & 0o777).toString(8).padStart(4, "0")}, user ${uid}`;
  const found: Finding[] = [];
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    const todo = `chmod 600 ${path}, unless that is wanted`;
    found.push({ level: "warning", about, seen: `${shown}: others than its owner may use it`, todo });
  }
  if (nlink > 1) {
    // SQLite keeps its log under the name by which it opened the file.
    const seen = `${shown}: it has ${nlink} names, and who opens it by another one is not kept out`;
    found.push({ level: "warning", about, seen, todo: "make sure that all use the same name" });
  }
  return found.length > 0 ? found : [ok(about, shown)];
}

function fileSystem(path: string): Finding {
  const { type, bavail, bsize } = statfsSync(dirname(path));
  const freeBytes = bavail * bsize;
  const seen = `type 0x${(type >>> 0).toString(16)}, ${Math.floor(freeBytes / 2 ** 20)} MiB free`;
  const about = "file system";
  const network = networkFileSystem(type);
  if (network !== undefined) {
    const todo = "move the file to a local disk: others on the network are not kept out";
    return { level: "problem", about, seen: `${network}, ${seen}`, todo };
  }
  if (freeBytes < littleSpace) return { level: "warning", about, seen, todo: "free some space" };
  if (process.platform === "linux" && type >>> 0 === fuse) {
    const todo = "make sure that it is a disk of this machine, and not one that others mount, too";
    return { level: "warning", about, seen: `FUSE, ${seen}`, todo };
  }
  return ok(about, seen);
}

function journal(db: Database): Finding {
  const { journal_mode: mode } = db.prepare<{ journal_mode: string }>("PRAGMA journal_mode").get() ?? {};
  if (mode === "wal")
    return ok("journal", "write-ahead log; the ceiling of the tokens is written through to the disk");
  return {
    level: "problem",
    about: "journal",
    seen: `mode ${mode}`,
    todo: "close all clients and open it again",
  };
}

function tables(db: Database): Finding {
  const { user_version: version } = db.prepare<{ user_version: bigint }>("PRAGMA user_version").get() ?? {};
  if (version === BigInt(schemaVersion)) return ok("tables", `version ${version}`);
  const seen = `version ${version}, this holdfast knows ${schemaVersion}`;
  return { level: "problem", about: "tables", seen, todo: "use the same version of holdfast everywhere" };
}

function damage(db: Database, path: string): Finding {
  const [first] = db.prepare<{ quick_check: string }>("PRAGMA quick_check(1)").all();
  if (first?.quick_check === "ok") return ok("integrity", "no damage found");
  return {
    level: "problem",
    about: "integrity",
    seen: first?.quick_check ?? "no answer",
    todo: `stop all who use it and delete ${path}`,
  };
}

function entries(db: Database, machine: Machine): readonly Finding[] {
  const rows = db
    .prepare<{ process: string; until: bigint }>("SELECT process, until FROM entries WHERE queue <> ''")
    .all();
  const processes = new Set(rows.map(({ process }) => process));
  const gone = new Set([...processes].filter(isGone));
  const nowUs = machine.nowUs();
  const stuck = rows.filter(({ process, until }) => until <= nowUs || gone.has(process)).length;
  const seen = ok("entries", `${rows.length} of ${processes.size} processes`);
  if (stuck === 0) return [seen];
  const todo = "nothing: whoever asks next takes them out, and so does any process within a minute";
  const about = "entries left behind";
  return [seen, { level: "warning", about, seen: `${stuck} expired or of ended processes`, todo }];
}

function boot({ bootId }: Machine): Finding {
  if (bootId !== null) return ok("boot", `the system names it: ${bootId}`);
  const seen = "the system does not name its boots: entries from before a restart may live for their ttl";
  return { level: "warning", about: "boot", seen, todo: "nothing, if restarts are rare" };
}
