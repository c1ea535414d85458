/** Three ZooKeeper servers that reach each other through proxies, so that any one of them can be cut off. */
import type { ServerFault } from "../live/nemesis.ts";
import { TcpProxy } from "../servers/tcp-proxy.ts";
import { startZooKeeper } from "../servers/zookeeper.ts";
import { type Cluster, pickFrom, serverKill, serverPause } from "./cluster.ts";

/** The way from one server to another. */
interface Link {
  readonly from: number;
  readonly to: number;
  readonly proxy: TcpProxy;
}

/** An ensemble of three. */
export async function zookeeperCluster(): Promise<Cluster> {
  const links: Link[] = [];
  const between = async (from: number, to: number, port: number): Promise<number> => {
    const proxy = await TcpProxy.start(port);
    links.push({ from, to, proxy });
    return proxy.port;
  };
  const nodes = await startZooKeeper(3, { between });
  const [first] = nodes;
  const answer = (await first?.ask("srvr")) ?? "";
  const servers = nodes.map((node, index) => [`zookeeper ${index + 1}`, node] as const);
  const partition: ServerFault = {
    kind: "partition",
    is: null,
    strike: async (pick) => {
      const lonely = pickFrom(pick, [0, 1, 2]);
      const cut = links.filter(({ from, to }) => from === lonely || to === lonely);
      for (const { proxy } of cut) proxy.blackhole();
      return {
        target: `zookeeper ${lonely + 1}`,
        heal: async () => {
          for (const { proxy } of cut) proxy.heal();
        },
      };
    },
  };
  return {
    url: `zookeeper://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    version: `ZooKeeper ${/version: ([\d.]+)/.exec(answer)?.[1] ?? "?"}`,
    faults: [serverPause(servers), serverKill(servers), partition],
    impossible: new Map(),
    usual: ["server-pause", "server-kill", "partition"],
    stop: async () => {
      await Promise.all(nodes.map((node) => node.remove()));
      await Promise.all(links.map(({ proxy }) => proxy.close()));
    },
  };
}
