/** Throwaway etcd servers: one node, or a cluster; breaking them is left to server-process.ts. */
import { freePorts, makeFolder, type Recipe, ServerProcess } from "./server-process.ts";

/** How nodes are run. */
export interface EtcdOptions {
  /** Further arguments of etcd. */
  readonly args?: readonly string[];
  /** How clients talk to it. */
  readonly scheme?: "http" | "https";
  /** Instead of asking for its health over http. */
  readonly ready?: (endpoint: string) => Promise<unknown>;
}

/** Where a node lives and whom it knows. */
export interface EtcdPlace {
  readonly name: string;
  readonly folder: string;
  /** The URL for clients. */
  readonly client: string;
  /** The URL for the other members. */
  readonly peer: string;
  /** Where that URL leads, if it is not an address of this machine. */
  readonly listen?: string;
  /** All members, as etcd wants them. */
  readonly members: string;
  /** What runs it, such as `ip netns exec …`. */
  readonly run?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Faster than the defaults, so that a lease may be as short as a second (one and a half election timeouts, rounded up).
 */
const pace = { "heartbeat-interval": 50, "election-timeout": 500 };

/** One node of a cluster. */
export class EtcdNode extends ServerProcess {
  readonly endpoint: string;

  constructor(recipe: Recipe, endpoint: string) {
    super(recipe);
    this.endpoint = endpoint;
  }

  get port(): number {
    return Number(new URL(this.endpoint).port);
  }

  /** The value of one of its metrics, summed over labels; 0 where it has none of that name. Not over TLS. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.endpoint}/metrics`)).text();
    const values = text
      .split("\n")
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .map((line) => Number(line.slice(line.lastIndexOf(" "))));
    return values.reduce((sum, value) => sum + value, 0);
  }

  /** Whether it leads now. Not over TLS. */
  async leads(): Promise<boolean> {
    return (await this.metric("etcd_server_is_leader")) === 1;
  }
}

/** A node that has not been started. */
export function etcdNode(place: EtcdPlace, options: EtcdOptions = {}): EtcdNode {
  const { name, folder, client, peer, listen = peer, members, run = [], env } = place;
  const { args = [], ready } = options;
  const settings = {
    name,
    "data-dir": `${folder}/data`,
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": listen,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": members,
    "initial-cluster-state": "new",
    // Members whose lists are the same belong together, so no two clusters on this machine may share a token.
    "initial-cluster-token": members,
    "log-level": "error",
    logger: "zap",
    ...pace,
  };
  const [command, ...before] = [...run, "etcd"];
  const own = Object.entries(settings).map(([key, value]) => `--${key}=${value}`);
  return new EtcdNode(
    {
      name: `etcd ${name}`,
      command,
      folder,
      args: [...before, ...own, ...args],
      env,
      ready: () => (ready ?? healthy)(client),
    },
    client,
  );
}

/** Starts a cluster of so many nodes on loopback. */
export async function startEtcd(count: number, options: EtcdOptions = {}): Promise<EtcdNode[]> {
  const ports = await freePorts(2 * count);
  const [clients, peers] = [ports.slice(0, count), ports.slice(count)];
  const peerOf = (index: number): string => `http://127.0.0.1:${peers[index]}`;
  const members = peers.map((_, index) => `n${index}=${peerOf(index)}`).join(",");
  const nodes = await Promise.all(
    clients.map(async (port, index) => {
      const client = `${options.scheme ?? "http"}://127.0.0.1:${port}`;
      const folder = await makeFolder("etcd");
      return etcdNode({ name: `n${index}`, folder, client, peer: peerOf(index), members }, options);
    }),
  );
  try {
    await Promise.all(nodes.map((node) => node.start()));
  } catch (error) {
    await Promise.all(nodes.map((node) => node.remove()));
    throw error;
  }
  return nodes;
}

async function healthy(endpoint: string): Promise<void> {
  const answer = await fetch(`${endpoint}/health`, { signal: AbortSignal.timeout(1_000) });
  if (!(await answer.text()).includes('"health":"true"')) throw new Error("it is not healthy");
}
