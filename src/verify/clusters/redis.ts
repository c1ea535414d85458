/** One Redis that keeps its data; a primary with a replica behind a link that can be cut; five independent servers for Redlock. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerFault } from "../live/nemesis.ts";
import { ClockShim } from "../servers/clock-shim.ts";
import { versionOf } from "../servers/programs.ts";
import { ask, inStep, quickReplication, replicated, type RedisServer, startRedis } from "../servers/redis.ts";
import { TcpProxy } from "../servers/tcp-proxy.ts";
import { clockFaults, type Cluster, serverEmpty, serverKill, serverPause } from "./cluster.ts";

/** What makes a server keep all that it has confirmed. */
export const durableRedis: readonly string[] = ["--appendonly", "yes", "--appendfsync", "always"];

/** Takes away what a server has kept. */
export async function emptyRedis(server: { readonly folder: string }): Promise<void> {
  await rm(join(server.folder, "appendonlydir"), { recursive: true, force: true });
}

async function version(): Promise<string> {
  const text = await versionOf("redis-server", ["--version"]);
  return `Redis ${/v=([\d.]+)/.exec(text)?.[1] ?? text}`;
}

/** One server that keeps its data over a restart. */
export async function redisCluster(): Promise<Cluster> {
  const shim = await ClockShim.build();
  const one = await startRedis({ args: durableRedis, env: { ...process.env, ...shim?.env } });
  const servers = [["redis", one.server]] as const;
  const clock = clockFaults([["redis", shim]]);
  return {
    url: `redis://127.0.0.1:${one.port}`,
    version: await version(),
    faults: [serverPause(servers), serverKill(servers), serverEmpty(servers, emptyRedis), ...clock.faults],
    impossible: clock.impossible,
    usual: ["server-pause", "server-kill"],
    stop: async () => {
      await one.server.remove();
      await shim?.remove();
    },
  };
}

/** How long a primary goes on confirming writes that its replica does not get. */
const cutMs = 600;

/** A primary and a replica. Clients always find the primary of the moment. */
export class FailoverPair {
  readonly front: TcpProxy;
  #primary: RedisServer;
  #replica: RedisServer;
  #link: TcpProxy;
  readonly #direct: boolean;

  private constructor(
    primary: RedisServer,
    replica: RedisServer,
    link: TcpProxy,
    front: TcpProxy,
    direct: boolean,
  ) {
    this.#primary = primary;
    this.#replica = replica;
    this.#link = link;
    this.front = front;
    this.#direct = direct;
  }

  /** Starts it. Without a proxy in between the link cannot be cut, and is as fast as it is. */
  static async start({ direct = false }: { readonly direct?: boolean } = {}): Promise<FailoverPair> {
    const [primary, replica] = await Promise.all([
      startRedis({ args: quickReplication }),
      startRedis({ args: quickReplication }),
    ]);
    const link = await TcpProxy.start(primary.port);
    const front = await TcpProxy.start(primary.port);
    const pair = new FailoverPair(primary, replica, link, front, direct);
    await pair.#follow();
    return pair;
  }

  get primaryPort(): number {
    return this.#primary.port;
  }

  /** What the primary confirms from now on does not reach its replica. */
  cut(): void {
    this.#link.blackhole();
  }

  /** The link works again, and the replica has what it missed. */
  async heal(): Promise<void> {
    this.#link.heal();
    await inStep(this.#primary.port, this.#replica.port);
  }

  /** The primary dies, and its replica takes its place, with whatever it has got. */
  async promote(): Promise<void> {
    const old = this.#primary;
    await old.server.kill();
    await ask(this.#replica.port, "replicaof", "no", "one");
    this.#primary = this.#replica;
    this.#replica = old;
    this.front.leadTo({ host: "127.0.0.1", port: this.#primary.port });
  }

  /** Who died comes back empty, and follows the other. */
  async rejoin(): Promise<void> {
    await this.#replica.server.start();
    await this.#link.close();
    this.#link = await TcpProxy.start(this.#primary.port);
    await this.#follow();
  }

  async stop(): Promise<void> {
    await Promise.all([this.front.close(), this.#link.close()]);
    await Promise.all([this.#primary.server.remove(), this.#replica.server.remove()]);
  }

  async #follow(): Promise<void> {
    const port = this.#direct ? this.#primary.port : this.#link.port;
    await ask(this.#replica.port, "replicaof", "127.0.0.1", String(port));
    await replicated(this.#primary.port, 1);
    await inStep(this.#primary.port, this.#replica.port);
  }
}

/** A pair whose replica is promoted while it lags behind. */
export async function redisFailover(): Promise<Cluster> {
  const pair = await FailoverPair.start();
  const promote: ServerFault = {
    kind: "promote",
    is: "fail-over",
    strike: async () => {
      pair.cut();
      await sleep(cutMs);
      await pair.promote();
      return { target: "primary", heal: () => pair.rejoin() };
    },
  };
  return {
    url: `redis://127.0.0.1:${pair.front.port}`,
    version: await version(),
    faults: [promote],
    impossible: new Map(),
    usual: ["promote"],
    stop: () => pair.stop(),
  };
}

/** How many servers a Redlock has. */
const redlockNodes = 5;

/** Five servers that know nothing of each other. */
export async function redlockCluster(): Promise<Cluster> {
  const shims = await Promise.all(Array.from({ length: redlockNodes }, () => ClockShim.build()));
  const nodes = await Promise.all(
    shims.map((shim) => startRedis({ args: durableRedis, env: { ...process.env, ...shim?.env } })),
  );
  const servers = nodes.map(({ server }, index) => [`redis ${index + 1}`, server] as const);
  const clock = clockFaults(shims.map((shim, index) => [`redis ${index + 1}`, shim] as const));
  return {
    url: `redlock://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    version: await version(),
    faults: [
      // One of five does not matter, whatever happens to it.
      serverPause(servers, null),
      serverKill(servers),
      serverEmpty(servers, emptyRedis),
      ...clock.faults,
    ],
    impossible: clock.impossible,
    usual: ["server-pause", "server-kill"],
    stop: async () => {
      await Promise.all(nodes.map(({ server }) => server.remove()));
      await Promise.all(shims.map(async (shim) => shim?.remove()));
    },
  };
}
