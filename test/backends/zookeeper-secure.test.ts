/** The ZooKeeper backend over TLS, against a server with certificates of its own: who is trusted, and how a refusal reads. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeFolder, removeFolder } from "../../scripts/lib/for-tests.mjs";
import { type ZooKeeperOptions, zookeeperBackend } from "../../src/backends/zookeeper/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { type Certificates, makeCertificates } from "../helpers/certificates.ts";
import { type SecureRig, secured } from "../helpers/zookeeper.ts";

/** Longer than a test may take: what is refused is not to wait for it. */
const reach = 120_000;

let folder: string;
let ours: Certificates;
let others: Certificates;

beforeAll(async () => {
  folder = await makeFolder("zookeeper-tls");
  ours = await makeCertificates(folder);
  const elsewhere = await makeFolder("zookeeper-tls");
  others = await makeCertificates(elsewhere);
  await removeFolder(elsewhere);
});
afterAll(() => removeFolder(folder));

async function use<T>(options: ZooKeeperOptions, work: (locks: LockManager) => Promise<T>): Promise<T> {
  await using locks = await connect(zookeeperBackend({ root: "/s", tickMs: 100, reach, ...options }));
  return await work(locks);
}

/** What a request is refused with; the token, if it is not. */
function refusal(options: ZooKeeperOptions): Promise<unknown> {
  return use(options, (locks) => locks.request("a", (lock) => lock.token).catch((error: unknown) => error));
}

const unavailable = (text: RegExp): unknown =>
  expect.objectContaining({ code: "LOCK_UNAVAILABLE", message: expect.stringMatching(text) });

describe.each([false, true])("TLS, with client certificates: %s", (mutual) => {
  let rig: SecureRig;
  let hosts: string;
  let trusted: NonNullable<ZooKeeperOptions["tls"]>;

  beforeAll(async () => {
    rig = await secured(folder, ours, mutual);
    hosts = rig.secure;
    const { ca, cert, key } = ours;
    trusted = mutual ? { ca, cert, key } : { ca };
  });
  afterAll(() => rig.close());

  it("stands in one queue with a client of the plain port, and hands over both ways", async () => {
    const order: string[] = [];
    await use({ hosts, tls: trusted }, (secure) =>
      use({ hosts: rig.hosts }, async (plain) => {
        const lock = await secure.acquire("a");
        const waiting = plain.request("a", (next) => {
          order.push("plain");
          return next.token;
        });
        await expect.poll(async () => (await secure.query()).pending.length).toBe(1);
        order.push("secure");
        const then = secure.request("a", () => order.push("secure again"));
        expect(await lock.release()).toBe("released");
        expect(await waiting).toBeGreaterThan(lock.token);
        await then;
      }),
    );
    expect(order).toEqual(["secure", "plain", "secure again"]);
  });

  it("the servers tell their state over it", async () => {
    const backend = zookeeperBackend({ hosts, tls: trusted, tickMs: 100 });
    const findings = await backend.examine();
    await backend.close();
    expect(findings).toContainEqual(
      expect.objectContaining({
        level: "ok",
        about: `server ${hosts}`,
        seen: expect.stringMatching(/^ZooKeeper 3/),
      }),
    );
  });

  it("a server of an authority that we do not know is refused at once", async () => {
    const reason = /127\.0\.0\.1:\d+: .*certificate/;
    expect(await refusal({ hosts, tls: { ...trusted, ca: others.ca } })).toEqual(unavailable(reason));
    expect(await refusal({ hosts, tls: {} })).toEqual(unavailable(reason));
  });

  it("a server with a certificate for another name is refused at once", async () => {
    const tls = { ...trusted, servername: "zk1.example" };
    expect(await refusal({ hosts, tls })).toEqual(unavailable(/zk1\.example/));
  });

  it("a server that cannot be trusted is passed over for one that can", async () => {
    const wrong = rig.hosts;
    for (let turn = 0; turn < 4; turn++) {
      expect(await refusal({ hosts: `${wrong},${hosts}`, tls: trusted })).toEqual(expect.any(BigInt));
    }
  });

  it("a client that speaks no TLS, or speaks it at the plain port, is told that nobody was reached", async () => {
    const told = unavailable(/no server of ZooKeeper could be reached/);
    expect(await refusal({ hosts, reach: 500 })).toEqual(told);
    expect(await refusal({ hosts: rig.hosts, tls: trusted, reach: 500 })).toEqual(told);
  });

  it("by URL: certificates are named by their files", async () => {
    const { ca } = ours.files;
    const { cert, key } = ours.clientFiles;
    const client = mutual ? `&cert=${cert}&key=${key}` : "";
    const url = `zookeepers://${hosts}/?ca=${ca}${client}`;
    await using locks = await connect(url);
    expect(await locks.request("url", (lock) => lock.token)).toEqual(expect.any(BigInt));
    await using strict = await connect(`${url}&servername=zk1.example`);
    await expect(strict.request("url", () => {})).rejects.toEqual(unavailable(/zk1\.example/));
  });

  if (!mutual) return;

  it("a client without a certificate, or with one of another authority, is refused at once", async () => {
    const { ca } = ours;
    const { cert, key } = others;
    for (const tls of [{ ca }, { ca, cert, key }]) {
      expect(await refusal({ hosts, tls })).toEqual(
        unavailable(/127\.0\.0\.1:\d+: [\w ]*certificate[\w ]*$/),
      );
    }
  });
});
