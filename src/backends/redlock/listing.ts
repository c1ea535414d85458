/** Who has which lock, asked of all nodes: for people, and for whoever wants to evict somebody. */
import type { Entry } from "../../core/backend.ts";
import { afterReading, type Clock } from "../../core/clock.ts";
import { sentFailure } from "../redis/failures.ts";
import { asText } from "../redis/link.ts";
import { type NodeFailure, tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import { type Holder, holderOf } from "./holder.ts";
import { patternOf, queueOf } from "./keys.ts";
import type { Node } from "./node.ts";
import { quorumOf } from "./quorum.ts";
import { oursScript } from "./scripts.ts";
import { entryOf, readLook } from "./values.ts";

/** The entry that has a lock on a majority of nodes; none if nobody has. Rejects if too few nodes say. */
export function list(fleet: Fleet, clock: Clock, key: string): Promise<readonly Entry[]> {
  const { length } = fleet.nodes;
  const quorum = quorumOf(length);
  return new Promise((resolve, reject) => {
    const seen: Holder[] = [];
    const failures: NodeFailure[] = [];
    let [open, over] = [length, false];
    const judge = (): void => {
      open -= 1;
      if (over) return;
      const holder = holderOf(seen, quorum);
      const mayStillCome = holderOf(seen, Math.max(1, quorum - open)) !== null || open >= quorum;
      if (holder === null && open > 0 && mayStillCome) return;
      over = true;
      if (length - failures.length < quorum) reject(tooFew("LOCK_UNAVAILABLE", failures, length, quorum));
      else resolve(holder === null ? [] : [entryOf(holder.held, holder.leftMs, clock.wallMs())]);
    };
    fleet.call("look", [key], [], {
      answered: (_node, answer) => {
        const look = readLook(answer);
        if (look !== null) seen.push(look);
        judge();
      },
      failed: (node, error) => {
        failures.push({ node: fleet.nodes[node]?.label ?? "", error });
        judge();
      },
    });
  });
}

/** Those of some keys of strings that are of locks: all with the prefix, but where there is none only those with values of ours. */
export async function locksAmong(
  node: Node,
  prefix: string,
  found: readonly unknown[],
): Promise<readonly string[]> {
  const keys = found.map(asText).filter((key) => queueOf(prefix, key) !== null);
  if (prefix !== "" || keys.length === 0) return keys;
  const ours = await node.link.send("EVAL", [oursScript, String(keys.length), ...keys]);
  return Array.isArray(ours) ? ours.map(asText) : [];
}

/** The names of locks that a node has, among those that start with a prefix. */
async function scan(node: Node, ms: number, prefix: string, start: string): Promise<readonly string[]> {
  await node.whenUp(ms);
  const queues: string[] = [];
  const pattern = patternOf(prefix, start);
  let cursor = "0";
  do {
    const args = [cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", "string"];
    const page = await node.link.send("SCAN", args);
    const [next, keys]: unknown[] = Array.isArray(page) ? page : [];
    cursor = asText(next ?? "0");
    for (const key of await locksAmong(node, prefix, Array.isArray(keys) ? keys : [])) {
      const queue = queueOf(prefix, key);
      if (queue?.startsWith(start)) queues.push(queue);
    }
  } while (cursor !== "0");
  return queues;
}

/** The names of all locks that a majority may have. Rejects with LOCK_UNAVAILABLE if too few nodes answer in time. */
export async function names(
  fleet: Fleet,
  clock: Clock,
  prefix: string,
  start: string,
): Promise<readonly string[]> {
  const ms = fleet.deadlineMs;
  const failures: NodeFailure[] = [];
  const found = new Map<string, number>();
  await Promise.all(
    fleet.nodes.map(async (node) => {
      try {
        for (const queue of new Set(await within(clock, 10 * ms, scan(node, ms, prefix, start))))
          found.set(queue, (found.get(queue) ?? 0) + 1);
      } catch (error) {
        failures.push({ node: node.label, error: sentFailure(error) });
      }
    }),
  );
  const { length } = fleet.nodes;
  const quorum = quorumOf(length);
  if (length - failures.length < quorum) throw tooFew("LOCK_UNAVAILABLE", failures, length, quorum);
  return [...found].filter(([, nodes]) => nodes >= quorum).map(([queue]) => queue);
}

/** An answer, waited for no longer than this. */
export function within<T>(clock: Clock, ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = afterReading(clock, ms, () => reject(new Error(`no answer within ${ms} ms`)));
    void answer.then(resolve, reject).finally(() => timer.cancel());
  });
}
