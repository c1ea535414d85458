/** The Redlock backend: one lock on a majority of independent Redis servers, fenced; with one server, the plain lock that all languages share. */
import type { Clock } from "../../core/clock.ts";
import { invalid } from "../../core/errors.ts";
import type { RedisClient } from "../redis/index.ts";
import { checkIoredis, IoredisLink, isIoredis } from "../redis/ioredis.ts";
import { isObject, type Link } from "../redis/link.ts";
import { checkNodeRedis, isNodeRedis, NodeRedisLink } from "../redis/node-redis.ts";
import { type Health, healthOf } from "../redis/fitness.ts";
import { linkTo } from "../redis/open.ts";
import { placeOfClient, placeOfUrl } from "../redis/place.ts";
import { type Place, RedlockBackend, type Settings } from "./backend.ts";
import { connectMs } from "./outgoing.ts";
import { readRedlockUrl } from "./url.ts";

export { RedlockBackend } from "./backend.ts";
export { redlockTraits } from "./traits.ts";
export type { RedisClient } from "../redis/index.ts";

/** What is the same for clients that are handed in and for a URL. Give all clients of the same locks the same. */
export interface RedlockSettings {
  /**
   * What the keys of locks start with: the key of a lock is the prefix and its name. Without one, nothing tells a lock of another
   * program from any other key: then listings show our own locks only.
   * @default ""
   */
  readonly prefix?: string | undefined;
  /**
   * How long a node has for an answer, in milliseconds; where the ttl is short, a quarter of that is all it has.
   * @default 300
   */
  readonly deadlineMs?: number | undefined;
  /**
   * How long after its start a node does not count that does not keep all its data (AOF with fsync always), in
   * milliseconds: what it may have forgotten is over then. A longer ttl is refused. 0: nodes always count, and a restart
   * may let two hold at once.
   * @default 60000
   */
  readonly quarantineMs?: number | undefined;
  /**
   * Whether locks get a token, now and then for the price of one more round trip.
   * @default true
   */
  readonly fencing?: boolean | undefined;
  /**
   * What becomes of nodes at `connect` that are not as they should be: a warning of the process, a rejection with
   * LOCK_UNSUPPORTED, or nothing.
   * @default "warn"
   */
  readonly health?: Health | undefined;
  /** Where time comes from: for tests. */
  readonly clock?: Clock | undefined;
}

/** Options of redlockBackend: clients or a URL, and settings. */
export type RedlockOptions = RedlockSettings & (NodesHandedIn | NodesByUrl);

/** Your own clients, one for each server. */
export interface NodesHandedIn {
  /** ioredis or node-redis clients, each of a server of its own. They stay open when the backend is closed. */
  readonly clients: readonly RedisClient[];
  readonly url?: undefined;
}

/** Connections of its own. */
export interface NodesByUrl {
  /**
   * redlock://h1:6379,h2:6379,h3:6379 or redlocks:// for TLS. Settings after "?" take precedence. Needs ioredis or redis
   * (node-redis) to be installed.
   */
  readonly url: string;
  readonly clients?: undefined;
}

/** Locks on several independent servers. It connects with the first call, or with `connect`. */
export function redlockBackend(options: RedlockOptions): RedlockBackend {
  if (options.url !== undefined) {
    const { nodes, options: given } = readRedlockUrl(options.url);
    const settings = settingsOf({ ...options, ...settingsIn(given) });
    const places = nodes.map((address) => ({
      label: placeOfUrl(address),
      link: linkTo(address, Math.max(connectMs, settings.deadlineMs)),
    }));
    return new RedlockBackend(distinct(places), settings);
  }
  const { clients } = options;
  if (!Array.isArray(clients) || clients.length === 0) {
    throw invalid("give clients of ioredis or node-redis, one for each node, or a url", {
      backend: "redlock",
    });
  }
  if (new Set(clients).size < clients.length) {
    throw invalid("give each node a client of its own: the same one twice has two votes", {
      backend: "redlock",
    });
  }
  const places = clients.map((client, index) => ({
    label: placeOfClient(client) ?? `node ${index + 1}`,
    link: linkOf(client),
  }));
  return new RedlockBackend(distinct(places), settingsOf(options));
}

function linkOf(client: unknown): Link {
  if (isObject(client) && isIoredis(client)) {
    checkIoredis(client);
    return oneServer(new IoredisLink(client, false));
  }
  if (isObject(client) && isNodeRedis(client)) {
    checkNodeRedis(client);
    return oneServer(new NodeRedisLink(client, false));
  }
  throw invalid("a client is neither one of ioredis nor one of node-redis", { backend: "redlock" });
}

function oneServer(link: Link): Link {
  if (!link.cluster) return link;
  throw invalid("give clients of single servers: the nodes of a cluster are not independent", {
    backend: "redlock",
  });
}

/** Votes are bits of one number. */
const mostNodes = 31;

/** The same server twice would have two votes. */
function distinct(places: readonly Place[]): readonly Place[] {
  if (places.length > mostNodes) {
    throw invalid(`${places.length} nodes were given, and ${mostNodes} are the most: five are usual`, {
      backend: "redlock",
    });
  }
  const labels = places.map(({ label }) => label);
  const twice = labels.find((label, index) => labels.indexOf(label) !== index);
  if (twice === undefined) return places;
  throw invalid(`${twice} is given twice: each node must be a server of its own`, { backend: "redlock" });
}

function settingsIn(options: ReadonlyMap<string, string>): RedlockSettings {
  const numbers = ["deadlineMs", "quarantineMs"] as const;
  const given = numbers.flatMap((name) => {
    const text = options.get(name);
    return text === undefined ? [] : [[name, Number(text)] as const];
  });
  const [prefix, fencing, health] = ["prefix", "fencing", "health"].map((name) => options.get(name));
  if (fencing !== undefined && fencing !== "true" && fencing !== "false")
    throw invalid("the option fencing of a URL is true or false", { backend: "redlock" });
  return {
    ...Object.fromEntries(given),
    ...(prefix === undefined ? {} : { prefix }),
    ...(fencing === undefined ? {} : { fencing: fencing === "true" }),
    ...(health === undefined ? {} : { health: healthOf(health, "redlock") }),
  };
}

/** @internal Options with their defaults, checked. */
export function settingsOf(options: RedlockSettings): Settings {
  const { prefix = "", fencing = true, clock } = options;
  if (typeof prefix !== "string" || prefix.includes("\0"))
    throw invalid("prefix must be a string without NUL", { backend: "redlock" });
  if (typeof fencing !== "boolean") throw invalid("fencing must be true or false", { backend: "redlock" });
  const deadlineMs = whole(options.deadlineMs ?? 300, "deadlineMs", 1);
  const quarantineMs = whole(options.quarantineMs ?? 60_000, "quarantineMs", 0);
  const health = healthOf(options.health ?? "warn", "redlock");
  return { prefix, deadlineMs, quarantineMs, fencing, health, clock };
}

function whole(value: unknown, option: string, least: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least) return value;
  throw invalid(`${option} must be a whole number from ${least} on`, { backend: "redlock" });
}
