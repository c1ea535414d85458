/** Three etcd members: in network namespaces of their own where these can be made, so that one can be cut off, else on loopback. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerFault } from "../live/nemesis.ts";
import { type EtcdNode, startEtcd } from "../servers/etcd.ts";
import { canMakeNamespaces, SplitCluster } from "../servers/etcd-split.ts";
import { versionOf } from "../servers/programs.ts";
import { type Cluster, pickFrom, serverKill, serverPause } from "./cluster.ts";

/** A cluster of three. */
export async function etcdCluster(): Promise<Cluster> {
  const version = (await versionOf("etcd", ["--version"])).replace("etcd Version:", "etcd");
  if (!(await canMakeNamespaces())) {
    const nodes = await startEtcd(3);
    return clusterOf(nodes, version, null, async () => {
      await Promise.all(nodes.map((node) => node.remove()));
    });
  }
  const split = await SplitCluster.start();
  return clusterOf(split.nodes, version, split, () => split.remove());
}

/** Who follows is cut off from the others: every promise holds. */
function partition(split: SplitCluster): ServerFault {
  return {
    kind: "partition",
    is: null,
    strike: async (pick) => {
      const leader = await leaderOf(split);
      return cutOff(
        split,
        pickFrom(
          pick,
          split.nodes.filter((node) => node !== leader),
        ),
      );
    },
  };
}

/** The leader is cut off: what was its own to end, it ends when it is back, as one that stood still does. */
function leaderPartition(split: SplitCluster): ServerFault {
  return {
    kind: "leader-partition",
    is: "store-pause",
    strike: async () => cutOff(split, await leaderOf(split)),
  };
}

async function cutOff(split: SplitCluster, node: EtcdNode): ReturnType<ServerFault["strike"]> {
  const place = split.nodes.indexOf(node) + 1;
  await split.cutOff(place);
  return { target: `etcd ${place}`, heal: () => split.cutOff(place, false) };
}

/** How long a new leader may take to be known, in milliseconds. */
const electionMs = 10_000;

async function leaderOf({ nodes }: SplitCluster): Promise<EtcdNode> {
  const until = performance.now() + electionMs;
  for (;;) {
    const leads = await Promise.all(nodes.map((node) => node.leads().catch(() => false)));
    const leader = nodes[leads.indexOf(true)];
    if (leader !== undefined) return leader;
    if (performance.now() > until) throw new Error(`no member of etcd has led for ${electionMs / 1_000} s`);
    await sleep(100);
  }
}

const noNamespaces =
  "a server is cut off by a network namespace of its own: run it as root (CAP_NET_ADMIN and CAP_SYS_ADMIN), on Linux with ip installed";

function clusterOf(
  nodes: readonly EtcdNode[],
  version: string,
  split: SplitCluster | null,
  stop: () => Promise<void>,
): Cluster {
  const partitions = split === null ? [] : [partition(split), leaderPartition(split)];
  const servers = nodes.map((node, index) => [`etcd ${index + 1}`, node] as const);
  return {
    url: `etcd://${nodes.map(({ endpoint }) => endpoint.replace("http://", "")).join(",")}`,
    version,
    faults: [serverPause(servers), serverKill(servers), ...partitions],
    impossible: new Map(
      split === null
        ? [
            ["partition", noNamespaces],
            ["leader-partition", noNamespaces],
          ]
        : [],
    ),
    // A leader that was out of touch ends leases that are alive: not among the usual ones, since nothing is promised then.
    usual: ["server-kill", ...partitions.filter(({ is }) => is === null).map(({ kind }) => kind)],
    stop,
  };
}
