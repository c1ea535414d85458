/** The ZooKeeper backend: locks among all who reach an ensemble, Curator's clients among them. */
import type { ConnectionOptions } from "node:tls";
import { type Clock, type Random, systemClock } from "../../core/clock.ts";
import { type Duration, durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/errors.ts";
import { checkTls } from "../../core/url-parts.ts";
import { ZooKeeperBackend } from "./backend.ts";
import { type Acl, type Credentials, type Ensemble, parseEnsemble } from "./client/index.ts";
import { examineEnsemble } from "./examine.ts";
import type { Layout } from "./nodes.ts";
import { type NameStyle, pathsBelow } from "./paths.ts";

export { ZooKeeperBackend, zookeeperTraits } from "./backend.ts";
export type { Acl, Credentials } from "./client/index.ts";
export type { Layout } from "./nodes.ts";
export type { NameStyle } from "./paths.ts";
export { zookeeperUrl } from "./url.ts";

/** Options of zookeeperBackend. */
export interface ZooKeeperOptions {
  /** The servers, and a chroot if there is one: "zk1:2181,zk2:2181,zk3:2181/services". */
  readonly hosts: string;
  /**
   * The node below which the queues lie, within the chroot.
   * @default "/holdfast"
   */
  readonly root?: string | undefined;
  /**
   * How a lock's name becomes a path: "encoded", one node below the root with what is not allowed written as %2F; or "paths",
   * where the name is a path itself, as Java services name theirs.
   * @default "encoded"
   */
  readonly names?: NameStyle | undefined;
  /**
   * Whose nodes ours stand among: those of Curator's InterProcessMutex, or those of its InterProcessReadWriteLock.
   * @default "mutex"
   */
  readonly layout?: Layout | undefined;
  /**
   * One session of this length for all entries, instead of one for each ttl. Fewer connections; but the entries of a client
   * that has died stay for as long as this, whatever their ttl. The servers have bounds of their own.
   * @default a session for each ttl
   */
  readonly session?: Duration | undefined;
  /** Who we are; with digest, the secret is "user:password". */
  readonly auth?: Credentials | readonly Credentials[] | undefined;
  /**
   * Who may touch our nodes.
   * @default with auth, only we; else anyone
   */
  readonly acl?: readonly Acl[] | undefined;
  /** Talks TLS to the servers, with these options of node:tls; `{}` takes what Node trusts. */
  readonly tls?: ConnectionOptions | undefined;
  /**
   * tickTime of the servers: half of it is kept in reserve, since a follower may tell its leader so late that we live.
   * @default 2000
   */
  readonly tickMs?: number | undefined;
  /**
   * How long a call waits for a server to be reached until it fails.
   * @default "5s"
   */
  readonly reach?: Duration | undefined;
  /** Where time comes from: for tests. */
  readonly clock?: Clock | undefined;
  /** Where chance comes from: for tests. */
  readonly random?: Random | undefined;
}

const all = 31;
const anyone: readonly Acl[] = [{ perms: all, scheme: "world", id: "anyone" }];
const whoeverWeAre: readonly Acl[] = [{ perms: all, scheme: "auth", id: "" }];

/** A client of an ensemble; it connects when it is first asked for something. */
export function zookeeperBackend(options: ZooKeeperOptions): ZooKeeperBackend {
  const {
    root = "/holdfast",
    names = "encoded",
    layout = "mutex",
    session,
    auth,
    tls,
    tickMs = 2_000,
  } = options;
  const { clock = systemClock, random = Math.random, reach = 5_000 } = options;
  const { hosts, chroot } = ensembleOf(options.hosts);
  const credentials = auth === undefined ? [] : "scheme" in auth ? [auth] : auth;
  const acl = options.acl ?? (credentials.length > 0 ? whoeverWeAre : anyone);
  checkTls("zookeeper", tls);
  if (names !== "encoded" && names !== "paths") throw invalid('names is "encoded" or "paths"');
  if (layout !== "mutex" && layout !== "read-write") throw invalid('layout is "mutex" or "read-write"');
  if (!(tickMs > 0)) throw invalid("tickMs is a number of milliseconds above 0");
  return new ZooKeeperBackend({
    hosts,
    // Part of all paths, so that it is made where it is missing.
    chroot: "",
    sessionMs: session === undefined ? undefined : durationMs(session, { option: "session", leastMs: 100 }),
    reachMs: durationMs(reach, { option: "reach", leastMs: 100 }),
    reportMs: tickMs / 2,
    auth: credentials,
    tls,
    clock,
    random,
    paths: pathsBelow(root, names, chroot),
    layout,
    acl,
    examine: (sessions) => examineEnsemble({ hosts, tls, tickMs, acl, sessions }),
  });
}

function ensembleOf(hosts: string): Ensemble {
  try {
    return parseEnsemble(hosts);
  } catch (cause) {
    throw invalid(cause instanceof Error ? cause.message : String(cause));
  }
}
