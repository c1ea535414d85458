/** Throwaway etcd servers for tests, as tests want them: one, some with certificates, and the words to talk about keys. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type EtcdNode, type EtcdOptions, startEtcd } from "../../scripts/lib/for-tests.mjs";
import type { Violation } from "../../src/verify/index.ts";

const execute = promisify(execFile);

/** One node. */
export async function startOne(options: EtcdOptions = {}): Promise<EtcdNode> {
  const [node] = await startEtcd(1, options);
  if (node === undefined) throw new Error("no node was started");
  return node;
}

/** Runs etcdctl against a node. */
export async function etcdctl(node: EtcdNode, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  const { stdout } = await execute("etcdctl", [`--endpoints=${node.endpoint}`, ...args], { env });
  return stdout.trim();
}

/** The node that leads now; waits until there is one. */
export async function leaderOf(nodes: readonly EtcdNode[]): Promise<EtcdNode> {
  for (;;) {
    for (const node of nodes) {
      if ((await node.metric("etcd_server_is_leader").catch(() => 0)) === 1) return node;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** How soon a leader that was out of touch has leases revoked when it is back, in nanoseconds. */
const staleRevokes = 1_500_000_000n;

/**
 * Whether this is what etcd does by itself, without any lock (docs/backends/etcd.md): a leader that was out of touch for
 * longer than a ttl ends leases when it is back that the next leader has prolonged, and the next in line is granted.
 */
export function isByStaleLeader({ invariant, events }: Violation, backAt: readonly bigint[]): boolean {
  const granted = events.filter(({ f }) => f === "acquire").map(({ t }) => t);
  const last = granted.reduce((latest, t) => (t > latest ? t : latest), 0n);
  const isSoon = backAt.some((t) => last > t && last - t < staleRevokes);
  return (invariant === "M1" || invariant === "M6") && isSoon;
}

/** Files and contents of an authority with a certificate for a server on loopback and one for a client. */
export interface Certificates {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
  /** What etcd needs to serve with them; with `mutual` it asks clients for theirs. */
  serverArgs(mutual: boolean): readonly string[];
}

/** Makes certificates in a folder, with the openssl command. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const file = (name: string): string => join(folder, name);
  const openssl = (command: string): Promise<unknown> =>
    execute("openssl", command.split(" "), { cwd: folder });
  const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  await openssl(`req -x509 ${newKey} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority`);
  const sign = async (name: string, extensions: string): Promise<void> => {
    await writeFile(file(`${name}.ext`), extensions);
    await openssl(`req ${newKey} -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`);
    const authority = "-CA ca.pem -CAkey ca.key -CAcreateserial";
    await openssl(`x509 -req -in ${name}.csr ${authority} -out ${name}.pem -days 2 -extfile ${name}.ext`);
  };
  // The server's own gateway is a client of the server, with the same certificate.
  await sign("server", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
  await sign("client", "extendedKeyUsage=clientAuth\n");
  return {
    ca: await readFile(file("ca.pem")),
    cert: await readFile(file("client.pem")),
    key: await readFile(file("client.key")),
    serverArgs: (mutual) => {
      const own = [`--cert-file=${file("server.pem")}`, `--key-file=${file("server.key")}`];
      return mutual ? [...own, "--client-cert-auth", `--trusted-ca-file=${file("ca.pem")}`] : own;
    },
  };
}
