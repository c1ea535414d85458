/** Redis and Redlock over TLS, by URL, with both libraries: one server, a cluster, Sentinels, three nodes. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { connect } from "../../src/connect.ts";
import { freePorts, makeFolder, removeFolder, startServer } from "../../src/verify/servers/server-process.ts";
import { type Certificates, makeCertificates } from "../helpers/certificates.ts";

const libraries = ["ioredis", "redis"] as const;

let folder: string;
let certificates: Certificates;
let query: string;
/** The ports for TLS: of servers on their own, of a node that is a cluster by itself, of a Sentinel. */
let ports: { readonly servers: readonly number[]; readonly cluster: number; readonly sentinel: number };
const running: Array<{ remove(): Promise<void> }> = [];

/** What a server needs to speak TLS on a port, with clients that have to show who they are. */
function secureArgs(port: number): readonly string[] {
  const { ca, cert, key } = certificates.files;
  const files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca];
  return ["--tls-port", String(port), ...files, "--tls-auth-clients", "yes"];
}

async function startSecure(...args: readonly string[]): Promise<{ port: number; plain: number }> {
  const [port = 0] = await freePorts(1);
  const { server, port: plain } = await startRedis({ args: [...secureArgs(port), ...args] });
  running.push(server);
  return { port, plain };
}

async function startSecureCluster(): Promise<number> {
  const [bus = 0] = await freePorts(1);
  const cluster = ["--cluster-enabled", "yes", "--cluster-port", String(bus), "--tls-cluster", "yes"];
  const { port, plain } = await startSecure(...cluster, "--cluster-announce-ip", "127.0.0.1");
  await ask(plain, "cluster", "addslotsrange", "0", "16383");
  while (!(await ask(plain, "cluster", "info")).includes("cluster_state:ok"));
  return port;
}

async function startSecureSentinel(primary: number): Promise<number> {
  const [port = 0, plain = 0] = await freePorts(2);
  const own = await makeFolder("sentinel-tls");
  const config = join(own, "sentinel.conf");
  const words = [...secureArgs(port), "--tls-replication", "yes", "--port", String(plain), "--dir", own];
  const lines = words.join(" ").split(/ ?--/).filter(Boolean);
  await writeFile(config, [...lines, `sentinel monitor main 127.0.0.1 ${primary} 1`, ""].join("\n"));
  const server = await startServer({
    name: "sentinel",
    command: "redis-server",
    args: [config, "--sentinel"],
    folder: own,
    ready: async () => {
      const state = await ask(plain, "sentinel", "master", "main");
      if (!/flags\nmaster\n/.test(state)) throw new Error(state);
    },
  });
  running.push(server);
  return port;
}

beforeAll(async () => {
  folder = await makeFolder("redis-tls");
  certificates = await makeCertificates(folder);
  const { cert, key } = certificates.clientFiles;
  query = String(new URLSearchParams({ ca: certificates.files.ca, cert, key }));
  const servers = [];
  for (let count = 0; count < 3; count++) servers.push((await startSecure("--tls-replication", "yes")).port);
  const [first = 0] = servers;
  ports = { servers, cluster: await startSecureCluster(), sentinel: await startSecureSentinel(first) };
});

afterAll(async () => {
  await Promise.all(running.map((server) => server.remove()));
  await removeFolder(folder);
});

const urls: Readonly<Record<string, () => string>> = {
  "rediss://": () => `rediss://127.0.0.1:${ports.servers[0]}?`,
  "rediss+cluster://": () => `rediss+cluster://127.0.0.1:${ports.cluster}?`,
  "rediss+sentinel://": () => `rediss+sentinel://127.0.0.1:${ports.sentinel}/main?`,
  "redlocks://": () =>
    `redlocks://${ports.servers.map((port) => `127.0.0.1:${port}`).join(",")}?quarantineMs=0`,
};

describe.each(libraries)("with %s", (library) => {
  it.each(Object.entries(urls))("%s hands a lock over", async (_scheme, url) => {
    const where = `${url()}&${query}&client=${library}&health=ignore`;
    await using ours = await connect(where);
    await using theirs = await connect(where);
    const lock = await ours.acquire("a");
    const waiting = theirs.request("a", (next) => next.token);
    await lock.release();
    expect(await waiting).toBeGreaterThan(lock.token);
  });

  it("says why it trusts a server not", async () => {
    const url = `rediss://127.0.0.1:${ports.servers[0]}?client=${library}`;
    await expect(connect(url)).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringMatching(/self-signed certificate|unable to verify/),
    });
  });
});

it("has parameters of TLS only where it is spoken", async () => {
  for (const scheme of ["redis", "redlock"]) {
    await expect(connect(`${scheme}://h?ca=/x`)).rejects.toThrow(/no option "ca"/);
  }
});

it("names the file that cannot be read", async () => {
  await expect(connect("rediss://h?ca=/nowhere.pem")).rejects.toThrow(
    /the file of ca cannot be read.*nowhere/,
  );
});
