/** ZooKeeper for tests: the server that the environment gives, or throwaway ones. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts } from "../../scripts/lib/for-tests.mjs";
import {
  type Acl,
  hasZooCode,
  parseEnsemble,
  type SessionOptions,
  ZooSession,
} from "../../src/backends/zookeeper/client/index.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type ZooOptions, startZooKeeper, type ZooServer } from "../../scripts/lib/zookeeper-for-tests.mjs";
import type { Certificates } from "./certificates.ts";

/** Where the servers of a test are. */
export interface ZooRig {
  /** "host:port,host:port" */
  readonly hosts: string;
  /** The throwaway ones; none if the environment gave a server. */
  readonly servers: readonly ZooServer[];
  close(): Promise<void>;
}

/** One server, unless HOLDFAST_TEST_ZOOKEEPER_URL gives one. */
export async function givenOrStarted(options?: ZooOptions): Promise<ZooRig> {
  const url = process.env["HOLDFAST_TEST_ZOOKEEPER_URL"];
  if (url === undefined || url === "") return started(1, options);
  return { hosts: url.replace(/^zookeeper:\/\//, ""), servers: [], close: async () => {} };
}

/** Throwaway servers. */
export async function started(count: number, options?: ZooOptions): Promise<ZooRig> {
  const servers = await startZooKeeper(count, options);
  return {
    hosts: servers.map(({ port }) => `127.0.0.1:${port}`).join(","),
    servers,
    close: async () => {
      await Promise.all(servers.map((server) => server.remove()));
    },
  };
}

/** A server with a plain port and one for TLS. */
export interface SecureRig extends ZooRig {
  /** "host:port" for TLS. */
  readonly secure: string;
}

/** Starts a server with certificates from a folder; `mutual`: clients need one, too. */
export async function secured(folder: string, { files }: Certificates, mutual: boolean): Promise<SecureRig> {
  const both = join(folder, "both.pem");
  await writeFile(both, Buffer.concat([await readFile(files.key), await readFile(files.cert)]));
  const [port] = await freePorts(1);
  const rig = await started(1, {
    settings: [
      `secureClientPort=${port}`,
      "secureClientPortAddress=127.0.0.1",
      "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
      `ssl.keyStore.location=${both}`,
      "ssl.keyStore.type=PEM",
      `ssl.trustStore.location=${files.ca}`,
      "ssl.trustStore.type=PEM",
      `ssl.clientAuth=${mutual ? "need" : "none"}`,
    ],
  });
  return { ...rig, secure: `127.0.0.1:${port}` };
}

/** A session for looking at the servers beside what is tested. */
export function rawSession(hosts: string, changes: Partial<SessionOptions> = {}): ZooSession {
  return new ZooSession({
    ...parseEnsemble(hosts),
    sessionMs: 5_000,
    pingShare: 1 / 12,
    reportMs: 50,
    reachMs: 5_000,
    clock: systemClock,
    random: Math.random,
    ...changes,
  });
}

/** Anybody may do anything. */
export const openAcl: readonly Acl[] = [{ perms: 31, scheme: "world", id: "anyone" }];

/** The nodes that are left at and below a path. */
export async function litterBelow(hosts: string, path: string): Promise<readonly string[]> {
  const looker = rawSession(hosts);
  try {
    return await nodesBelow(looker, path);
  } finally {
    await looker.close();
  }
}

async function nodesBelow(looker: ZooSession, path: string): Promise<string[]> {
  const listed = await looker.getChildren(path).catch((error: unknown) => {
    if (!hasZooCode(error, "noNode")) throw error;
  });
  if (listed === undefined) return [];
  const below = await Promise.all(listed.children.map((child) => nodesBelow(looker, `${path}/${child}`)));
  return [path, ...below.flat()];
}
