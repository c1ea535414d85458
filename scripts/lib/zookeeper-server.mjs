/** Throwaway ZooKeeper servers on loopback for tests and benches: one alone, or an ensemble; breaking them is left to server-process.mjs. */
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePorts, makeFolder, ServerProcess } from "./server-process.mjs";

/**
 * @typedef {object} ZooOptions
 * @property {number} [tickMs] the servers' unit of time: short, so that sessions may be short
 * @property {number} [maxSessionMs]
 * @property {number} [containerMs] how often empty containers are removed
 * @property {boolean} [durable] whether it waits for the disk; tests are not about a loss of power
 * @property {readonly string[]} [settings] further lines of zoo.cfg
 * @property {(from: number, to: number, port: number) => Promise<number>} [between] the port by which one server of an
 *   ensemble reaches another, counted from 0: to put a proxy in between
 */

const jars = ["zookeeper.jar", "slf4j-simple.jar"].map((name) => join("/usr/share/java", name));

/** What every Java program here is run with, to start fast and stay small. */
export const javaFlags = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];

/** One server of an ensemble. */
export class ZooServer extends ServerProcess {
  /** @type {number} */
  port;

  /**
   * @param {import("./server-process.mjs").Recipe} recipe
   * @param {number} port
   */
  constructor(recipe, port) {
    super(recipe);
    this.port = port;
  }

  /** What it answers to a word of four letters. @returns {Promise<string>} */
  ask(/** @type {string} */ word) {
    return askServer(this.port, word);
  }

  /** Whether it leads, follows or stands alone. */
  async mode() {
    return /^Mode: (\w+)/m.exec(await this.ask("srvr"))?.[1] ?? "none";
  }
}

/**
 * Starts an ensemble of so many servers; one is a server alone.
 *
 * @param {number} count
 * @param {ZooOptions} [options]
 * @returns {Promise<ZooServer[]>}
 */
export async function startZooKeeper(count, options = {}) {
  const ports = await freePorts(3 * count);
  const clients = ports.slice(0, count);
  const { between = async (_from, _to, port) => port } = options;
  const reach = (/** @type {number} */ from, /** @type {number} */ to, port = 0) =>
    from === to ? port : between(from, to, port);
  const servers = await Promise.all(
    clients.map(async (port, from) => {
      const peers = await Promise.all(
        clients.map(async (_, to) => {
          const [quorum, election] = [ports[count + to], ports[2 * count + to]];
          return `127.0.0.1:${await reach(from, to, quorum)}:${await reach(from, to, election)}`;
        }),
      );
      return makeServer(from, port, peers, options);
    }),
  );
  try {
    await Promise.all(servers.map((server) => server.start()));
  } catch (error) {
    await Promise.all(servers.map((server) => server.remove()));
    throw error;
  }
  return servers;
}

/**
 * @param {number} index
 * @param {number} port
 * @param {readonly string[]} peers
 * @param {ZooOptions} options
 */
async function makeServer(index, port, peers, options) {
  const { tickMs = 100, maxSessionMs = 300_000, containerMs = 100, durable = false, settings = [] } = options;
  const folder = await makeFolder("zookeeper");
  await mkdir(join(folder, "data"));
  const lines = [
    `tickTime=${tickMs}`,
    `minSessionTimeout=${2 * tickMs}`,
    `maxSessionTimeout=${maxSessionMs}`,
    `dataDir=${folder}/data`,
    `clientPort=${port}`,
    "clientPortAddress=127.0.0.1",
    "maxClientCnxns=0",
    "admin.enableServer=false",
    "4lw.commands.whitelist=*",
    ...settings,
  ];
  if (peers.length > 1) {
    await writeFile(join(folder, "data", "myid"), String(index + 1));
    lines.push("initLimit=100", "syncLimit=20", ...peers.map((peer, at) => `server.${at + 1}=${peer}`));
  }
  await writeFile(join(folder, "zoo.cfg"), `${lines.join("\n")}\n`);
  const recipe = {
    name: `zookeeper ${index + 1}`,
    command: "java",
    folder,
    args: [
      ...javaFlags,
      "-Dzookeeper.extendedTypesEnabled=true",
      `-Dznode.container.checkIntervalMs=${containerMs}`,
      ...(durable ? [] : ["-Dzookeeper.forceSync=no"]),
      "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
      "-cp",
      jars.join(":"),
      "org.apache.zookeeper.server.quorum.QuorumPeerMain",
      join(folder, "zoo.cfg"),
    ],
    // Not "ruok": that is answered before the server serves.
    ready: async () => {
      if (!/^Mode: /m.test(await askServer(port, "srvr"))) throw new Error("it does not serve");
    },
  };
  return new ZooServer(recipe, port);
}

/**
 * @param {number} port
 * @param {string} word
 * @returns {Promise<string>}
 */
export function askServer(port, word) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(word));
    let text = "";
    socket.setTimeout(1_000, () => socket.destroy(new Error("no answer")));
    socket.on("data", (chunk) => (text += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}
