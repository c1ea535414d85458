/** Throwaway ZooKeeper servers on loopback: one alone, or an ensemble; breaking them is left to server-process.ts. */
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePorts, makeFolder, type Recipe, ServerProcess } from "./server-process.ts";

/** How servers are run. */
export interface ZooOptions {
  /** The servers' unit of time: short, so that sessions may be short. */
  readonly tickMs?: number;
  readonly maxSessionMs?: number;
  /** How often empty containers are removed. */
  readonly containerMs?: number;
  /** Whether it waits for the disk: what is tried here is not about a loss of power. */
  readonly durable?: boolean;
  /** Further lines of zoo.cfg. */
  readonly settings?: readonly string[];
  /** The port by which one server of an ensemble reaches another, counted from 0: to put a proxy in between. */
  readonly between?: (from: number, to: number, port: number) => Promise<number>;
}

/** The last two are for TLS: zookeeper.jar names all others that it needs. */
const jars = ["zookeeper.jar", "slf4j-simple.jar", "netty-codec.jar", "netty-resolver.jar"].map((name) =>
  join("/usr/share/java", name),
);

/** What every Java program here is run with, to start fast and stay small. */
export const javaFlags: readonly string[] = [
  "-Xmx128m",
  "-XX:+UseSerialGC",
  "-XX:TieredStopAtLevel=1",
  "-Xshare:auto",
];

/** One server of an ensemble. */
export class ZooServer extends ServerProcess {
  readonly port: number;

  constructor(recipe: Recipe, port: number) {
    super(recipe);
    this.port = port;
  }

  /** What it answers to a word of four letters. */
  ask(word: string): Promise<string> {
    return askServer(this.port, word);
  }

  /** Whether it leads, follows or stands alone. */
  async mode(): Promise<string> {
    return /^Mode: (\w+)/m.exec(await this.ask("srvr"))?.[1] ?? "none";
  }
}

/** Starts an ensemble of so many servers; one is a server alone. */
export async function startZooKeeper(count: number, options: ZooOptions = {}): Promise<ZooServer[]> {
  const ports = await freePorts(3 * count);
  const clients = ports.slice(0, count);
  const { between = async (_from, _to, port) => port } = options;
  const reach = async (from: number, to: number, port = 0): Promise<number> =>
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

async function makeServer(
  index: number,
  port: number,
  peers: readonly string[],
  options: ZooOptions,
): Promise<ZooServer> {
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
  const recipe: Recipe = {
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

/** What a server answers to a word of four letters. */
export function askServer(port: number, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(word));
    let text = "";
    socket.setTimeout(1_000, () => socket.destroy(new Error("no answer")));
    socket.on("data", (chunk) => (text += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}
