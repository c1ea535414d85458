/** Looks at a server's settings and state, without changing them: what its promises rest on, and what to do about it. */
import type { Finding } from "../../core/backend.ts";
import type { Settings } from "./backend.ts";
import { asText, type Link } from "./link.ts";
import type { ServerClocks } from "./server-clock.ts";

/** What INFO says, by field. */
export type Info = ReadonlyMap<string, string>;

/** Examines each server that has data. */
export async function examineServers(
  link: Link,
  settings: Settings,
  clocks: ServerClocks,
): Promise<readonly Finding[]> {
  const replies = await link.sendToAll("INFO", []);
  const infos = replies.map((reply) => readInfo(asText(reply)));
  const syncs = await Promise.all(infos.map((info, index) => syncOf(info, link, index)));
  const findings = infos.flatMap((info, index) => {
    const of = infos.length > 1 ? ` (node ${index + 1})` : "";
    const stored = persistence(info, syncs[index] ?? null);
    const own = [version(info), role(info), eviction(info), stored, replication(info, settings)];
    return [...own, ...disk(info, settings)].map((finding) => ({ ...finding, about: finding.about + of }));
  });
  return [...findings, clockFinding(clocks), ...clusterFinding(infos, link)];
}

/** The fields of an answer of INFO. */
export function readInfo(text: string): Info {
  const pairs = text.split(/\r?\n/).flatMap((line) => {
    const colon = line.indexOf(":");
    return colon > 0 && !line.startsWith("#") ? [[line.slice(0, colon), line.slice(colon + 1)] as const] : [];
  });
  return new Map(pairs);
}

/** Whether its version has all commands that are used. */
export function version(info: Info): Finding {
  const seen = info.get("redis_version") ?? "unknown";
  const old = Number(seen.split(".")[0]) < 7;
  const todo = old ? "use Redis 7.0 or newer: the scripts need PEXPIREAT with GT" : undefined;
  return { level: old ? "problem" : "ok", about: "version", seen, todo };
}

/** Whether it is a primary. */
export function role(info: Info): Finding {
  const said = info.get("role") ?? "unknown";
  if (said === "master") return { level: "ok", about: "role", seen: "primary" };
  const seen = said === "slave" ? "replica" : said;
  const todo = "connect to the primary, or by redis+sentinel:// or redis+cluster://, which follow it";
  return { level: "problem", about: "role", seen, todo };
}

/** Whether it throws keys away when it is full. */
export function eviction(info: Info): Finding {
  const policy = info.get("maxmemory_policy") ?? "unknown";
  const limited = info.get("maxmemory") !== "0";
  if (policy === "noeviction") return { level: "ok", about: "eviction", seen: policy };
  const todo =
    "set maxmemory-policy noeviction: a server that evicts keys takes locks away while they are held";
  const seen = limited ? policy : `${policy}, without a limit of memory`;
  return { level: limited ? "problem" : "warning", about: "eviction", seen, todo };
}

/** Whether no server that was examined takes keys away when its memory is short. */
export function isSafeFromEviction(findings: readonly Finding[]): boolean {
  const about = findings.filter((finding) => finding.about.startsWith("eviction"));
  return about.length > 0 && about.every(({ level }) => level === "ok");
}

/** When a server that has an append-only file brings it to the disk; null if it has none, or the user may not ask. */
async function syncOf(info: Info, link: Link, node: number): Promise<string | null> {
  if (info.get("aof_enabled") !== "1") return null;
  const answer = await link.sendTo(node, "CONFIG", ["GET", "appendfsync"]).catch(() => null);
  return /"(always|everysec|no)"/.exec(JSON.stringify(answer))?.[1] ?? null;
}

function persistence(info: Info, sync: string | null): Finding {
  if (info.get("aof_enabled") !== "1") {
    const todo =
      "set appendonly yes, appendfsync always: a restart without data lets two hold at once for up to a ttl";
    return { level: "warning", about: "persistence", seen: "no append-only file", todo };
  }
  const said = sync === null ? "" : `, fsync ${sync}`;
  // A server that ends and is started again has all of it; not so one whose machine has crashed.
  const todo =
    sync === null || sync === "always"
      ? undefined
      : "set appendfsync always if a machine that crashes must not forget its last locks";
  return { level: "ok", about: "persistence", seen: `append-only file${said}`, todo };
}

function replication(info: Info, { confirmation }: Settings): Finding {
  const replicas = Number(info.get("connected_slaves") ?? 0);
  const wanted = confirmation?.replicas ?? 0;
  const seen = replicas === 1 ? "1 replica" : `${replicas} replicas`;
  if (replicas < wanted) {
    const todo = `attach more replicas, or ask for fewer with the option replicas: ${wanted} must confirm, so no lock will be granted`;
    return { level: "problem", about: "replication", seen, todo };
  }
  if (replicas === 0 || wanted > 0) return { level: "ok", about: "replication", seen };
  const todo = "set the option replicas: a fail-over forgets what no replica has confirmed";
  return { level: "warning", about: "replication", seen: `${seen}, none has to confirm`, todo };
}

/** Whether it can confirm that an entry is on disk, where it has to. */
function disk(info: Info, { confirmation }: Settings): readonly Finding[] {
  if (confirmation === null || confirmation.aof === 0) return [];
  const seen = `version ${info.get("redis_version") ?? "unknown"}`;
  const [major = 0, minor = 0] = (info.get("redis_version") ?? "").split(".").map(Number);
  const problem = (what: string, todo: string): Finding => ({
    level: "problem",
    about: "aof",
    seen: what,
    todo: `${todo}: no lock will be granted`,
  });
  if (major < 7 || (major === 7 && minor < 2))
    return [problem(seen, "leave the option aof out, or use Redis 7.2 or newer, which has WAITAOF")];
  if (info.get("aof_enabled") !== "1") return [problem("no append-only file", "set appendonly yes")];
  return [{ level: "ok", about: "aof", seen: `${seen}, with an append-only file` }];
}

const slew =
  "let the server's clock be slewed, not stepped: a step forward ends locks early, one back takes tokens back";

function clockFinding({ steps }: ServerClocks): Finding {
  if (steps === 0) return { level: "ok", about: "clock", seen: "no step seen" };
  const seen = steps === 1 ? "stepped once" : `stepped ${steps} times`;
  return { level: "warning", about: "clock", seen, todo: slew };
}

/** Warns when a server's clock has stepped: whoever held a lock may not be alone. */
export function warnOfStep(ms: number): void {
  const seen = `the server's clock has stepped ${ms > 0 ? "forward" : "back"} by ${Math.round(Math.abs(ms) / 100) / 10} s against ours`;
  process.emitWarning(`redis: clock: ${seen}. ${slew}`, { type: "HoldfastWarning" });
}

/** A proxy in front of a cluster looks like one server; scripts with keys of several slots then fail. */
function clusterFinding(infos: readonly Info[], link: Link): readonly Finding[] {
  const clustered = infos.some((info) => info.get("cluster_enabled") === "1");
  if (!clustered || link.cluster) return [];
  const todo = "connect by redis+cluster:// or hand in a cluster client: a batch may touch only one slot";
  return [
    { level: "problem", about: "cluster", seen: "one node of a cluster, or a proxy in front of it", todo },
  ];
}

/** Whether wake-ups of a cluster stay on the node of their slot; `why` they do not, or null. */
export function pushFinding(why: string | null): Finding {
  if (why === null) return { level: "ok", about: "push", seen: "sharded channels" };
  const todo =
    "allow +spublish +ssubscribe +sunsubscribe, and give a prefix without braces: until then each wake-up is forwarded " +
    "to all nodes, and none is lost";
  return { level: "warning", about: "push", seen: `plain channels: ${why}`, todo };
}
