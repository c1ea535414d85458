/** Three etcd nodes on loopback that reach each other through proxies only, which can be cut one by one. Any system, any user. */
import { type EtcdNode, etcdNode } from "./etcd.ts";
import { type SplitCluster, startedOrGone } from "./etcd-split.ts";
import { freePorts, makeFolder } from "./server-process.ts";
import { SocksServer } from "./socks-server.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** Where a member is found. */
interface Member {
  readonly place: number;
  /** Of the loopback address: where it listens to the other members. */
  readonly port: number;
  /** By which the others know it. */
  readonly address: string;
}

/** The way from one member to another. */
interface Link {
  readonly from: number;
  readonly to: number;
  readonly proxy: TcpProxy;
}

/**
 * A cluster whose members share a network stack and do not know it.
 *
 * Each is known to the others by an address that belongs to nobody (RFC 5737), and has a SOCKS server of its own as the only way to
 * such addresses. So it is known of every connection who opened it, and to whom; what is sent would not tell: a renewal of a lease
 * that is passed on to the leader, for one, does not say from where. Loopback addresses would not do: for these Go asks no proxy.
 */
export class ProxyCluster implements SplitCluster {
  readonly nodes: EtcdNode[] = [];
  readonly #links: Link[] = [];
  readonly #socks: SocksServer[] = [];

  static async start(): Promise<SplitCluster> {
    const cluster = new ProxyCluster();
    return startedOrGone(cluster, () => cluster.#start());
  }

  async #start(): Promise<void> {
    const ports = await freePorts(6);
    const [clients, peers] = [ports.slice(0, 3), ports.slice(3)];
    const members = peers.map((port, index) => {
      const place = index + 1;
      return { place, port, address: `192.0.2.${place}:${port}` };
    });
    const list = members.map(({ place, address }) => `n${place}=http://${address}`).join(",");
    for (const [index, member] of members.entries()) {
      const socks = await this.#waysOf(member, members);
      const node = etcdNode({
        name: `n${member.place}`,
        folder: await makeFolder("etcd"),
        client: `http://127.0.0.1:${clients[index]}`,
        peer: `http://${member.address}`,
        listen: `http://127.0.0.1:${member.port}`,
        members: list,
        env: { ...process.env, HTTP_PROXY: socks.url, NO_PROXY: "", no_proxy: "" },
      });
      this.nodes.push(node);
    }
    await Promise.all(this.nodes.map((node) => node.start()));
  }

  /** Makes the links from one member to the others, and what it finds them by. */
  async #waysOf(member: Member, members: readonly Member[]): Promise<SocksServer> {
    const ways = new Map<string, TcpProxy>();
    for (const { place, port, address } of members) {
      if (place === member.place) continue;
      const proxy = new TcpProxy({ host: "127.0.0.1", port });
      this.#links.push({ from: member.place, to: place, proxy });
      ways.set(address, proxy);
    }
    const socks = await SocksServer.start(ways);
    this.#socks.push(socks);
    return socks;
  }

  async cutOff(place: number, cut = true): Promise<void> {
    for (const { from, to, proxy } of this.#links) {
      if (from !== place && to !== place) continue;
      if (cut) proxy.blackhole();
      else proxy.heal();
    }
  }

  async remove(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.remove()));
    await Promise.all(this.#links.map(({ proxy }) => proxy.close()));
    await Promise.all(this.#socks.map((socks) => socks.close()));
  }
}
