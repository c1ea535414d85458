/** Three etcd members: in network namespaces of their own where these can be made, so that one can be cut off, else on loopback. */
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
    return clusterOf(nodes, version, [], async () => {
      await Promise.all(nodes.map((node) => node.remove()));
    });
  }
  const split = await SplitCluster.start();
  const partition: ServerFault = {
    kind: "partition",
    is: null,
    strike: async (pick) => {
      const lonely = pickFrom(pick, [1, 2, 3]);
      await split.cutOff(lonely);
      return { target: `etcd ${lonely}`, heal: () => split.cutOff(lonely, false) };
    },
  };
  return clusterOf(split.nodes, version, [partition], () => split.remove());
}

function clusterOf(
  nodes: readonly EtcdNode[],
  version: string,
  more: readonly ServerFault[],
  stop: () => Promise<void>,
): Cluster {
  const servers = nodes.map((node, index) => [`etcd ${index + 1}`, node] as const);
  return {
    url: `etcd://${nodes.map(({ endpoint }) => endpoint.replace("http://", "")).join(",")}`,
    version,
    faults: [serverPause(servers), serverKill(servers), ...more],
    // A leader that stood still ends leases that are alive: not among the usual ones, since nothing is promised then.
    usual: ["server-kill", ...more.map(({ kind }) => kind)],
    stop,
  };
}
