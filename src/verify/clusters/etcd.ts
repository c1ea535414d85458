/** Three etcd members of which each can be cut off: by network namespaces where these can be made, else by proxies. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerFault } from "../live/nemesis.ts";
import type { EtcdNode } from "../servers/etcd.ts";
import { canMakeNamespaces, NamespaceCluster } from "../servers/etcd-namespaces.ts";
import { ProxyCluster } from "../servers/etcd-proxies.ts";
import type { SplitCluster } from "../servers/etcd-split.ts";
import { versionOf } from "../servers/programs.ts";
import { type Cluster, pickFrom, serverKill, serverPause } from "./cluster.ts";

/** A cluster of three. */
export async function etcdCluster(start: () => Promise<SplitCluster> = startSplit): Promise<Cluster> {
  const version = (await versionOf("etcd", ["--version"])).replace("etcd Version:", "etcd");
  const split = await start();
  const servers = split.nodes.map((node, index) => [`etcd ${index + 1}`, node] as const);
  return {
    url: `etcd://${split.nodes.map(({ endpoint }) => endpoint.replace("http://", "")).join(",")}`,
    version,
    faults: [serverPause(servers), serverKill(servers), partition(split), leaderPartition(split)],
    impossible: new Map(),
    // A leader that was out of touch ends leases that are alive: not among the usual ones, since nothing is promised then.
    usual: ["server-kill", "partition"],
    stop: () => split.remove(),
  };
}

async function startSplit(): Promise<SplitCluster> {
  return (await canMakeNamespaces()) ? NamespaceCluster.start() : ProxyCluster.start();
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
