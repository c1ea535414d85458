/** Throwaway Redis servers on loopback: one, a pair with Sentinels, a cluster; breaking them is left to their callers. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePorts, makeFolder, type ServerProcess, startServer } from "./server-process.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const execute = promisify(execFile);

/** A server and where it listens. */
export interface RedisServer {
  readonly server: ServerProcess;
  readonly port: number;
}

/** Asks a server by redis-cli and gives what it prints. */
export async function ask(port: number, ...words: readonly string[]): Promise<string> {
  const { stdout } = await execute("redis-cli", ["-p", String(port), ...words], { timeout: 10_000 });
  return stdout.trim();
}

/** Waits until something is so. */
async function until(
  isSo: () => Promise<boolean>,
  what = "the servers are ready",
  withinMs = 30_000,
): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    if (await isSo().catch(() => false)) return;
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(25);
  }
}

/** One server. Without persistence, unless arguments say otherwise. */
export async function startRedis(
  options: {
    readonly port?: number;
    readonly args?: readonly string[];
    readonly env?: NodeJS.ProcessEnv;
  } = {},
): Promise<RedisServer> {
  const { port, args = [], env } = options;
  const [own] = port === undefined ? await freePorts(1) : [port];
  const at = own ?? 0;
  const folder = await makeFolder("redis");
  const server = await startServer({
    name: "redis",
    command: "redis-server",
    args: [...basics(at, folder), "--save", "", "--appendonly", "no", ...args],
    folder,
    env,
    ready: async () => {
      const answer = await ask(at, "ping");
      // A server that wants a password, or is loading, is up as well.
      if (!/PONG|NOAUTH|LOADING|MASTERDOWN/.test(answer)) throw new Error(answer);
    },
  });
  return { server, port: at };
}

function basics(port: number, folder: string): readonly string[] {
  return [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    folder,
    "--daemonize",
    "no",
    "--pidfile",
    "",
  ];
}

/** What makes a replica follow its primary within milliseconds. */
export const quickReplication: readonly string[] = [
  "--repl-diskless-sync-delay",
  "0",
  "--repl-ping-replica-period",
  "1",
];

/** Waits until so many replicas are in step with a primary. */
export function replicated(port: number, replicas: number): Promise<void> {
  return until(async () => {
    const info = await ask(port, "info", "replication");
    return (info.match(/state=online/g) ?? []).length === replicas;
  }, "the replicas follow");
}

/** Waits until what is written to a primary arrives at its replica: one that is called online may still be loading. */
export async function inStep(primary: number, replica: number): Promise<void> {
  const probe = `in-step-${randomUUID()}`;
  await ask(primary, "set", probe, "1", "px", "60000");
  await until(async () => (await ask(replica, "exists", probe)) === "1", "the replica is in step");
}

/** A primary, replicas and Sentinels that notice its end within a second. */
export async function startSentinel(
  options: { readonly replicas?: number; readonly sentinels?: number } = {},
): Promise<{
  readonly name: string;
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
}> {
  const { replicas = 1, sentinels = 1 } = options;
  const primary = await startRedis({ args: quickReplication });
  const follow = [...quickReplication, "--replicaof", `127.0.0.1 ${primary.port}`];
  const followers = await Promise.all(Array.from({ length: replicas }, () => startRedis({ args: follow })));
  await replicated(primary.port, replicas);
  const watchers = await Promise.all(
    Array.from({ length: sentinels }, () => startWatcher(primary.port, Math.floor(sentinels / 2) + 1)),
  );
  await until(async () => {
    for (const { port } of watchers) {
      const state = await ask(port, "sentinel", "master", "primary");
      if (!new RegExp(`num-slaves\\n${replicas}\\n`).test(state)) return false;
      if (!(await ask(port, "sentinel", "ckquorum", "primary")).startsWith(`OK ${sentinels} usable`))
        return false;
    }
    return true;
  });
  return { name: "primary", servers: [primary, ...followers], sentinels: watchers };
}

async function startWatcher(primary: number, quorum: number): Promise<RedisServer> {
  const [port = 0] = await freePorts(1);
  const folder = await makeFolder("sentinel");
  const config = join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `sentinel monitor primary 127.0.0.1 ${primary} ${quorum}`,
    "sentinel down-after-milliseconds primary 1000",
    "sentinel failover-timeout primary 1000",
    "sentinel parallel-syncs primary 1",
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  const server = await startServer({
    name: "sentinel",
    command: "redis-server",
    args: [config, "--sentinel"],
    folder,
    ready: async () => {
      if ((await ask(port, "ping")) !== "PONG") throw new Error("no answer");
    },
  });
  await ask(
    port,
    ..."sentinel debug INFO-PERIOD 500 PUBLISH-PERIOD 300 PING-PERIOD 500 ASK-PERIOD 300".split(" "),
  );
  return { server, port };
}

/** A cluster of three primaries; with replicas, as many as there are primaries, and these come last. */
export async function startCluster(
  options: { readonly nodes?: number; readonly replicas?: 0 | 1; readonly nodeTimeoutMs?: number } = {},
): Promise<{ readonly servers: readonly RedisServer[] }> {
  const { replicas = 0, nodes = 3 * (1 + replicas), nodeTimeoutMs = 15_000 } = options;
  const ports = await freePorts(2 * nodes);
  const servers = await Promise.all(
    ports.slice(0, nodes).map((port, index) =>
      startRedis({
        port,
        args: [
          ..."--cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout".split(" "),
          String(nodeTimeoutMs),
          ...quickReplication,
          "--cluster-port",
          String(ports[nodes + index]),
        ],
      }),
    ),
  );
  const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
  const shape = ["--cluster-replicas", String(replicas), "--cluster-yes"];
  await execute("redis-cli", ["--cluster", "create", ...addresses, ...shape]);
  const primaries = servers.slice(0, nodes / (1 + replicas));
  await until(async () => {
    const states = await Promise.all(servers.map(({ port }) => ask(port, "cluster", "info")));
    return states.every((state) => state.includes("cluster_state:ok"));
  });
  await Promise.all(primaries.map(({ port }) => replicated(port, replicas)));
  return { servers };
}

/** A proxy in front of a server, to break its network with. */
export function startProxy(targetPort: number): Promise<TcpProxy> {
  return TcpProxy.start(targetPort);
}
