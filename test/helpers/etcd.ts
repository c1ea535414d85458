/** Throwaway etcd servers for tests, as tests want them: one, what it serves TLS with, and the words to talk about keys. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type EtcdNode, type EtcdOptions, startEtcd } from "../../scripts/lib/for-tests.mjs";
import type { Violation } from "../../src/verify/index.ts";
import type { Certificates } from "./certificates.ts";
import type { EndedWithLease } from "./etcd-ended.ts";

const execute = promisify(execFile);

/** One node. */
export async function startOne(options: EtcdOptions = {}): Promise<EtcdNode> {
  const [node] = await startEtcd(1, options);
  if (node === undefined) throw new Error("no node was started");
  return node;
}

/** Runs etcdctl against a node. */
export async function etcdctl(node: EtcdNode, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  const { stdout } = await execute("etcdctl", [`--endpoints=${node.endpoint}`, ...args], { env });
  return stdout.trim();
}

/** The node that leads now; waits until there is one. */
export async function leaderOf<Node extends Pick<EtcdNode, "metric">>(nodes: readonly Node[]): Promise<Node> {
  for (;;) {
    for (const node of nodes) {
      if ((await node.metric("etcd_server_is_leader").catch(() => 0)) === 1) return node;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * For how long a leader that was out of touch may have leases revoked when it is back, in nanoseconds: what it has asked for waits until
 * it knows of a leader, and etcd gives up a request after five seconds and two elections.
 */
const staleRevokes = 7_000_000_000n;

/**
 * Whether this is what etcd does by itself, without any lock (docs/backends/etcd.md): a leader that was out of touch for
 * longer than a ttl ends leases when it is back that the next leader has prolonged, and the next in line is granted. Two
 * have held, one after the other, soon after that; and the key of the first has ended with its lease.
 */
export function isByStaleLeader(
  { invariant, events }: Violation,
  backAt: readonly bigint[],
  ended: EndedWithLease,
): boolean {
  const [first, second, ...others] = events
    .filter(({ f, type }) => f === "acquire" && type === "ok")
    .toSorted((one, other) => ((one.token ?? 0n) < (other.token ?? 0n) ? -1 : 1));
  if (first === undefined || second === undefined || others.length > 0) return false;
  const isSoon = backAt.some((t) => second.t > t && second.t - t < staleRevokes);
  return (invariant === "M1" || invariant === "M6") && isSoon && ended.has(first.token ?? 0n);
}

/** What etcd needs to serve with certificates; with `mutual` it asks clients for theirs. */
export function secureArgs({ files }: Certificates, mutual: boolean): readonly string[] {
  const own = [`--cert-file=${files.cert}`, `--key-file=${files.key}`];
  return mutual ? [...own, "--client-cert-auth", `--trusted-ca-file=${files.ca}`] : own;
}
