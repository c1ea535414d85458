/** Throwaway etcd servers on loopback for tests and benches: one node, or a cluster; breaking them is left to server-process.mjs. */
import { freePorts, makeFolder, ServerProcess } from "./server-process.mjs";

/**
 * @typedef {object} EtcdOptions
 * @property {readonly string[]} [args] further arguments of etcd
 * @property {"http" | "https"} [scheme] how clients talk to it
 * @property {(endpoint: string) => Promise<unknown>} [ready] instead of asking for its health over http
 */

/**
 * Faster than the defaults, so that a lease may be as short as a second (one and a half election timeouts, rounded up).
 */
const pace = { "heartbeat-interval": 50, "election-timeout": 500 };

/** One node of a cluster. */
export class EtcdNode extends ServerProcess {
  /** @type {number} */
  port;
  /** @type {string} */
  endpoint;

  /**
   * @param {import("./server-process.mjs").Recipe} recipe
   * @param {number} port
   * @param {string} scheme
   */
  constructor(recipe, port, scheme) {
    super(recipe);
    this.port = port;
    this.endpoint = `${scheme}://127.0.0.1:${port}`;
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
 * Starts a cluster of so many nodes.
 *
 * @param {number} count
 * @param {EtcdOptions} [options]
 * @returns {Promise<EtcdNode[]>}
 */
export async function startEtcd(count, options = {}) {
  const ports = await freePorts(2 * count);
  const [clients, peers] = [ports.slice(0, count), ports.slice(count)];
  const members = peers.map((port, index) => `n${index}=http://127.0.0.1:${port}`).join(",");
  const nodes = await Promise.all(
    clients.map((port, index) => makeNode(index, port, peers[index] ?? 0, members, options)),
  );
  try {
    await Promise.all(nodes.map((node) => node.start()));
  } catch (error) {
    await Promise.all(nodes.map((node) => node.remove()));
    throw error;
  }
  return nodes;
}

/**
 * @param {number} index
 * @param {number} port
 * @param {number} peerPort
 * @param {string} members
 * @param {EtcdOptions} options
 */
async function makeNode(index, port, peerPort, members, { args = [], scheme = "http", ready }) {
  const folder = await makeFolder("etcd");
  const [client, peer] = [`${scheme}://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const settings = {
    name: `n${index}`,
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
  const recipe = {
    name: `etcd n${index}`,
    command: "etcd",
    folder,
    args: [...Object.entries(settings).map(([name, value]) => `--${name}=${value}`), ...args],
    ready: () => (ready ?? healthy)(client),
  };
  return new EtcdNode(recipe, port, scheme);
}

async function healthy(/** @type {string} */ endpoint) {
  const answer = await fetch(`${endpoint}/health`, { signal: AbortSignal.timeout(1_000) });
  if (!(await answer.text()).includes('"health":"true"')) throw new Error("it is not healthy");
}
