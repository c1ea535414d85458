/** Throwaway etcd servers for tests and benches: one node, or a cluster; breaking them is left to server-process.mjs. */
import { freePorts, makeFolder, ServerProcess } from "./server-process.mjs";

/**
 * @typedef {object} EtcdOptions
 * @property {readonly string[]} [args] further arguments of etcd
 * @property {"http" | "https"} [scheme] how clients talk to it
 * @property {(endpoint: string) => Promise<unknown>} [ready] instead of asking for its health over http
 */

/**
 * @typedef {object} Place where a node lives and whom it knows
 * @property {string} name
 * @property {string} folder
 * @property {string} client the URL for clients
 * @property {string} peer the URL for the other members
 * @property {string} members all members, as etcd wants them
 * @property {readonly string[]} [run] what runs it, such as `ip netns exec …`
 */

/**
 * Faster than the defaults, so that a lease may be as short as a second (one and a half election timeouts, rounded up).
 */
const pace = { "heartbeat-interval": 50, "election-timeout": 500 };

/** One node of a cluster. */
export class EtcdNode extends ServerProcess {
  /** @type {string} */
  endpoint;

  /**
   * @param {import("./server-process.mjs").Recipe} recipe
   * @param {string} endpoint
   */
  constructor(recipe, endpoint) {
    super(recipe);
    this.endpoint = endpoint;
  }

  get port() {
    return Number(new URL(this.endpoint).port);
  }

  /** The value of one of its metrics, summed over labels; 0 where it has none of that name. Not over TLS. */
  async metric(/** @type {string} */ name) {
    const text = await (await fetch(`${this.endpoint}/metrics`)).text();
    const values = text
      .split("\n")
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .map((line) => Number(line.slice(line.lastIndexOf(" "))));
    return values.reduce((sum, value) => sum + value, 0);
  }
}

/**
 * A node that has not been started.
 *
 * @param {Place} place
 * @param {EtcdOptions} [options]
 */
export function etcdNode({ name, folder, client, peer, members, run = [] }, { args = [], ready } = {}) {
  const settings = {
    name,
    "data-dir": `${folder}/data`,
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
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
      ready: () => (ready ?? healthy)(client),
    },
    client,
  );
}

/**
 * Starts a cluster of so many nodes on loopback.
 *
 * @param {number} count
 * @param {EtcdOptions} [options]
 * @returns {Promise<EtcdNode[]>}
 */
export async function startEtcd(count, options = {}) {
  const ports = await freePorts(2 * count);
  const [clients, peers] = [ports.slice(0, count), ports.slice(count)];
  const peerOf = (/** @type {number} */ index) => `http://127.0.0.1:${peers[index]}`;
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

async function healthy(/** @type {string} */ endpoint) {
  const answer = await fetch(`${endpoint}/health`, { signal: AbortSignal.timeout(1_000) });
  if (!(await answer.text()).includes('"health":"true"')) throw new Error("it is not healthy");
}
