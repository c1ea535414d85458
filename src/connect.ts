/** From a URL or a backend to a LockManager; each scheme loads its backend when it is first used. */
import { type Backend, type Finding, isAdmissible } from "./core/backend.ts";
import { invalid, LockError } from "./core/errors.ts";
import { findingText } from "./core/findings.ts";
import { LockManager, managerOptionNames, type ManagerOptions } from "./core/manager.ts";
import { typeName } from "./core/names.ts";
import { asObject, refuseOthers } from "./core/options.ts";
import { demand, type Requirements } from "./core/traits.ts";

/** Options of `connect`. */
export interface ConnectOptions extends ManagerOptions {
  /** What the store must be able to do; a store that cannot is refused with the reason. */
  readonly require?: Requirements | undefined;
}

/** For each scheme: opens a backend for a URL. */
const schemes: Readonly<Record<string, (url: string) => Promise<Backend>>> = {
  "memory:": openMemory,
  "sqlite:": openSqlite,
  "redis:": openByRedisUrl,
  "rediss:": openByRedisUrl,
  "redis+sentinel:": openByRedisUrl,
  "rediss+sentinel:": openByRedisUrl,
  "redis+cluster:": openByRedisUrl,
  "rediss+cluster:": openByRedisUrl,
  "redlock:": openByRedlockUrl,
  "redlocks:": openByRedlockUrl,
  "postgres:": openPostgres,
  "postgresql:": openPostgres,
  "mysql:": openMysql,
  "mariadb:": openMysql,
  "etcd:": openEtcd,
  "etcds:": openEtcd,
  "zookeeper:": openZookeeper,
  "zookeepers:": openZookeeper,
};

async function openMemory(url: string): Promise<Backend> {
  const { memoryBackend } = await import("./backends/memory/index.ts");
  return memoryBackend({ store: url.slice("memory:".length) });
}

async function openSqlite(url: string): Promise<Backend> {
  const { pathOfUrl, sqliteBackend } = await import("./backends/sqlite/index.ts");
  return sqliteBackend({ path: pathOfUrl(url) });
}

async function openByRedisUrl(url: string): Promise<Backend> {
  const { redisBackend } = await import("./backends/redis/index.ts");
  return redisBackend({ url });
}

async function openByRedlockUrl(url: string): Promise<Backend> {
  const { redlockBackend } = await import("./backends/redlock/index.ts");
  return redlockBackend({ url });
}

async function openPostgres(url: string): Promise<Backend> {
  const { postgresBackend } = await import("./backends/postgres/index.ts");
  return postgresBackend({ url });
}

async function openMysql(url: string): Promise<Backend> {
  const { mysqlBackend } = await import("./backends/mysql/index.ts");
  return mysqlBackend({ url: url.replace(/^mariadb:/, "mysql:") });
}

async function openEtcd(url: string): Promise<Backend> {
  const { etcdBackend } = await import("./backends/etcd/index.ts");
  return etcdBackend({ url });
}

async function openZookeeper(url: string): Promise<Backend> {
  const { zookeeperBackend, zookeeperUrl } = await import("./backends/zookeeper/index.ts");
  return zookeeperBackend(zookeeperUrl(url));
}

/**
 * Connects to a store. Without an argument it is a SQLite file that all processes of this user on this machine share.
 * A URL names another ("sqlite:/path" is a file, "memory:" is shared by all of this process that give the same URL); or
 * give a backend made by one of the factories.
 */
export async function connect(
  store: string | Backend = "sqlite:",
  options?: ConnectOptions,
): Promise<LockManager> {
  const backend = typeof store === "string" ? await load(store) : store;
  if (!isBackend(backend)) throw notABackend(store);
  try {
    const given: ConnectOptions = asObject(options ?? {});
    refuseOthers(given, [...managerOptionNames, "require"]);
    const { require, ...rest } = given;
    warnOf(backend, await admit(backend));
    demand(backend.name, backend.traits, require ?? {});
    return new LockManager(backend, rest);
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** Clients of Redis have a function of that name, too. */
function isBackend(store: Backend | null): boolean {
  return typeof store?.append === "function" && typeof store.traits === "object";
}

function notABackend(store: unknown): TypeError {
  const given = `give a URL or a backend, not ${typeName(store)}`;
  const todo = "a client of a store goes to the factory of its backend, such as redisBackend({ client })";
  return invalid(typeof store === "object" && store !== null ? `${given}; ${todo}` : given);
}

/** Opens the backend that a URL names, and waits until it answers. Warns of what is not as it should be only if it is told to. */
export async function openBackend(url: string, warns = false): Promise<Backend> {
  const backend = await load(url);
  try {
    const findings = await admit(backend);
    if (warns) warnOf(backend, findings);
    return backend;
  } catch (error) {
    await backend.close();
    throw error;
  }
}

async function admit(backend: Backend): Promise<readonly Finding[]> {
  return isAdmissible(backend) ? backend.admit() : [];
}

function warnOf({ name }: Backend, findings: readonly Finding[]): void {
  for (const finding of findings)
    process.emitWarning(`${name}: ${findingText(finding)}`, { type: "HoldfastWarning" });
}

async function load(url: string): Promise<Backend> {
  const scheme = /^[a-z][a-z0-9+.-]*:/.exec(url)?.[0];
  const open = scheme === undefined ? undefined : schemes[scheme];
  if (open !== undefined) return open(url);
  const known = Object.keys(schemes).join(", ");
  // The URL may carry a password: only its scheme is shown.
  throw new LockError(
    "LOCK_UNSUPPORTED",
    `there is no store for ${scheme ?? "a URL without a scheme"}; there is ${known}`,
  );
}
