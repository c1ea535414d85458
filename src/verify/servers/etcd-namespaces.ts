/** Three etcd nodes in three network namespaces on a bridge of their own, whose links can be cut one by one. Linux, root. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type EtcdNode, etcdNode } from "./etcd.ts";
import { type SplitCluster, startedOrGone } from "./etcd-split.ts";
import { makeFolder } from "./server-process.ts";

/** Runs ip, out of reach of Ctrl-C: what it does half-way nobody would take away. */
async function ip(command: string): Promise<void> {
  const child = spawn("ip", command.split(" "), { stdio: ["ignore", "ignore", "pipe"], detached: true });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await once(child, "close");
  if (child.exitCode !== 0) throw new Error(`ip ${command}: ${output.trim()}`);
}

/** Whether namespaces, and links between them, can be made here. */
export async function canMakeNamespaces(): Promise<boolean> {
  const name = `hfe${process.pid}`;
  try {
    await ip(`netns add ${name}`);
    await ip(`link add ${name} type bridge`);
    return true;
  } catch {
    return false;
  } finally {
    await ip(`link del ${name}`).catch(() => {});
    await ip(`netns del ${name}`).catch(() => {});
  }
}

/** A cluster whose members do not share a network stack. */
export class NamespaceCluster implements SplitCluster {
  readonly nodes: EtcdNode[] = [];
  readonly #bridge = `hfb${process.pid}`;
  /** One that no other process has whose number is near. */
  readonly #net = `10.${200 + (Math.floor(process.pid / 250) % 50)}.${process.pid % 250}`;

  static async start(): Promise<SplitCluster> {
    const cluster = new NamespaceCluster();
    return startedOrGone(cluster, () => cluster.#start());
  }

  async #start(): Promise<void> {
    await ip(`link add ${this.#bridge} type bridge`);
    await ip(`addr add ${this.#net}.254/24 dev ${this.#bridge}`);
    await ip(`link set ${this.#bridge} up`);
    for (const index of [1, 2, 3]) {
      const [space, link] = [this.#space(index), this.#link(index)];
      await ip(`netns add ${space}`);
      await ip(`link add ${link} type veth peer name eth0 netns ${space}`);
      await ip(`link set ${link} master ${this.#bridge} up`);
      await ip(`-n ${space} addr add ${this.#address(index)}/24 dev eth0`);
      await ip(`-n ${space} link set eth0 up`);
      await ip(`-n ${space} link set lo up`);
    }
    const peer = (index: number): string => `http://${this.#address(index)}:2380`;
    const members = [1, 2, 3].map((index) => `n${index}=${peer(index)}`).join(",");
    for (const index of [1, 2, 3]) {
      const client = `http://${this.#address(index)}:2379`;
      const name = `n${index}`;
      const folder = await makeFolder("etcd");
      const run = ["ip", "netns", "exec", this.#space(index)];
      this.nodes.push(etcdNode({ name, folder, client, peer: peer(index), members, run }));
    }
    await Promise.all(this.nodes.map((node) => node.start()));
  }

  async cutOff(index: number, cut = true): Promise<void> {
    for (const other of [1, 2, 3]) {
      if (other === index) continue;
      // On both sides: what one does not answer, it would still hear.
      await this.#block(index, other, cut);
      await this.#block(other, index, cut);
    }
  }

  #block(from: number, to: number, cut: boolean): Promise<void> {
    return ip(`-n ${this.#space(from)} route ${cut ? "add" : "del"} blackhole ${this.#address(to)}/32`);
  }

  async remove(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.remove()));
    for (const index of [1, 2, 3]) {
      // Not with its namespace, which goes when it likes.
      await ip(`link del ${this.#link(index)}`).catch(() => {});
      await ip(`netns del ${this.#space(index)}`).catch(() => {});
    }
    await ip(`link del ${this.#bridge}`).catch(() => {});
  }

  #space(index: number): string {
    return `hfe${index}-${process.pid}`;
  }

  #link(index: number): string {
    return `hfv${index}${process.pid}`;
  }

  #address(index: number): string {
    return `${this.#net}.${index}`;
  }
}
