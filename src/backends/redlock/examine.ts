/** Looks at all nodes without changing them: clocks, persistence, uptime, and locks that would never end. */
import type { Finding } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { eviction, type Info, readInfo, role, version } from "../redis/health.ts";
import { asText } from "../redis/link.ts";
import type { Fleet } from "./fleet.ts";
import { patternOf } from "./keys.ts";
import { locksAmong, within } from "./listing.ts";
import type { Node } from "./node.ts";
import { quorumOf } from "./quorum.ts";

/** Clocks that differ by more than this are not kept by anybody, in milliseconds. */
const mostSkewMs = 1_000;

/** How many keys are looked at for locks without a ttl, on each node. */
const mostLooked = 1_000;

/** What examinations rest on. */
interface Settings {
  readonly prefix: string;
  readonly quarantineMs: number;
}

/** What one node said. */
interface Seen {
  readonly node: Node;
  readonly info: Info;
  /** Its clock less ours, in milliseconds, and how much that may be wrong. */
  readonly aheadMs: number;
  readonly unsureMs: number;
  readonly syncsAlways: boolean;
  /** Locks that do not expire. */
  readonly endless: readonly string[];
}

/** Examines each node, and how they differ. */
export async function examineNodes(
  fleet: Fleet,
  clock: Clock,
  settings: Settings,
): Promise<readonly Finding[]> {
  const looks = fleet.nodes.map(async (node): Promise<Seen | Finding> => {
    try {
      return await within(
        clock,
        10 * fleet.deadlineMs,
        node.whenUp(fleet.deadlineMs).then(() => lookAt(node, clock, settings)),
      );
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const todo = "look at the server, its network and its ACL; the others have to do without it";
      return { level: "warning", about: `node ${node.label}`, seen: `cannot be examined: ${why}`, todo };
    }
  });
  const all = await Promise.all(looks);
  const seen = all.filter((one) => "info" in one);
  const failed = all.filter((one) => "level" in one);
  return [
    majority(fleet, seen.length),
    ...failed,
    clocks(seen),
    ...seen.flatMap((one) => ofNode(one, settings)),
  ];
}

async function lookAt(node: Node, clock: Clock, { prefix }: Settings): Promise<Seen> {
  const { link } = node;
  const info = readInfo(asText(await link.send("INFO", [])));
  const sentAt = clock.wallMs();
  const time = await link.send("TIME", []);
  const answeredAt = clock.wallMs();
  const [seconds, micros] = Array.isArray(time) ? time.map((part) => Number(asText(part))) : [];
  const serverMs = (seconds ?? 0) * 1_000 + (micros ?? 0) / 1_000;
  const sync = await link.send("CONFIG", ["GET", "appendfsync"]).catch(() => "");
  const args = ["0", "MATCH", patternOf(prefix, ""), "COUNT", String(mostLooked), "TYPE", "string"];
  const page = await link.send("SCAN", args);
  const keys: readonly unknown[] = Array.isArray(page) && Array.isArray(page[1]) ? page[1] : [];
  const locks = await locksAmong(node, prefix, keys);
  const lives = await Promise.all(locks.map((key) => link.send("PTTL", [key])));
  return {
    node,
    info,
    aheadMs: serverMs - (sentAt + answeredAt) / 2,
    unsureMs: (answeredAt - sentAt) / 2 + 1,
    syncsAlways: JSON.stringify(sync).includes("always"),
    endless: locks.filter((_key, index) => Number(asText(lives[index])) === -1),
  };
}

function majority(fleet: Fleet, answering: number): Finding {
  const nodes = fleet.nodes.length;
  const quorum = quorumOf(nodes);
  const seen = `${answering} of ${nodes} answer, ${quorum} have to agree`;
  if (answering < quorum) {
    return { level: "problem", about: "majority", seen, todo: "bring nodes back: no lock can be granted" };
  }
  if (answering < nodes) {
    const todo = "bring it back: a lock that fewer nodes have is lost with fewer of them";
    return { level: "warning", about: "majority", seen, todo };
  }
  if (nodes > 1 && nodes % 2 === 0) {
    const todo = `use ${nodes - 1} or ${nodes + 1} nodes: an even number survives no more failures than one less`;
    return { level: "warning", about: "majority", seen, todo };
  }
  return { level: "ok", about: "majority", seen };
}

function clocks(seen: readonly Seen[]): Finding {
  if (seen.length < 2) return { level: "ok", about: "clocks", seen: "one node, nothing to compare" };
  const sorted = seen.toSorted((a, b) => a.aheadMs - b.aheadMs);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return { level: "ok", about: "clocks", seen: "none" };
  const apartMs = Math.max(0, last.aheadMs - first.aheadMs - first.unsureMs - last.unsureMs);
  const text = `at least ${Math.round(apartMs)} ms apart (${last.node.label} ahead of ${first.node.label})`;
  if (apartMs <= mostSkewMs) return { level: "ok", about: "clocks", seen: apartMs < 1 ? "agree" : text };
  const todo =
    "let NTP slew the clocks of all nodes, and never step them: a step forward ends locks early, and enough nodes that do it let two hold at once";
  return { level: "warning", about: "clocks", seen: text, todo };
}

function ofNode(seen: Seen, settings: Settings): readonly Finding[] {
  const { node, info, endless } = seen;
  const own = [version(info), role(info), eviction(info), persistence(seen, settings), replicas(info)];
  const stuck: Finding[] = endless.map((key) => ({
    level: "problem",
    about: "stuck lock",
    seen: `${key} does not expire`,
    todo: "delete the key if nobody holds it, and let its owner set it with PX",
  }));
  return [...own, uptime(seen, settings), ...stuck].map((finding) => ({
    ...finding,
    about: `${finding.about} (${node.label})`,
  }));
}

function persistence({ info, syncsAlways }: Seen, { quarantineMs }: Settings): Finding {
  const aof = info.get("aof_enabled") === "1";
  const seen = aof
    ? `append-only file, fsync ${syncsAlways ? "always" : "not always"}`
    : "no append-only file";
  if (aof && syncsAlways) return { level: "ok", about: "persistence", seen };
  if (quarantineMs > 0) {
    const covered = `${seen}; after a restart it counts again when it has been up for ${quarantineMs} ms`;
    return { level: "ok", about: "persistence", seen: covered };
  }
  const todo = "set appendonly yes and appendfsync always, or give all clients a quarantineMs";
  return { level: "warning", about: "persistence", seen, todo };
}

function replicas(info: Info): Finding {
  const count = Number(info.get("connected_slaves") ?? 0);
  if (count === 0) return { level: "ok", about: "replicas", seen: "none" };
  const todo = "let no replica take over: it may not have what this node has acknowledged";
  return { level: "warning", about: "replicas", seen: String(count), todo };
}

function uptime({ node, info }: Seen, { quarantineMs }: Settings): Finding {
  const seen = `${info.get("uptime_in_seconds") ?? "?"} s, run ${(info.get("run_id") ?? "?").slice(0, 8)}`;
  const unable = node.voidBecause;
  if (unable === null || quarantineMs === 0) return { level: "ok", about: "uptime", seen };
  const todo = "wait: it was restarted and does not count yet";
  return { level: "warning", about: "uptime", seen, todo };
}
