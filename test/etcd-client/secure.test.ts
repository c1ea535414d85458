/** The thin client over TLS, with certificates of its own, and as a user with a password. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EtcdNode, makeFolder, removeFolder } from "../../scripts/lib/for-tests.mjs";
import { etcdBackend } from "../../src/backends/etcd/index.ts";
import { EtcdClient, type EtcdClientOptions } from "../../src/backends/etcd/client/client.ts";
import { status } from "../../src/backends/etcd/client/errors.ts";
import * as methods from "../../src/backends/etcd/client/methods.ts";
import { connect } from "../../src/connect.ts";
import { type Certificates, makeCertificates } from "../helpers/certificates.ts";
import { etcdctl, secureArgs, startOne } from "../helpers/etcd.ts";

const key = Buffer.from("k");

/** The answer to a call by a client of its own, or what it rejects with. */
async function ask(options: EtcdClientOptions): Promise<unknown> {
  const client = new EtcdClient(options);
  try {
    return await client.call(methods.put, { key }).catch((error: unknown) => error);
  } finally {
    await client.close();
  }
}

const answered = { header: { revision: expect.any(BigInt) } };

describe.each([false, true])("TLS, with client certificates: %s", (mutual) => {
  let folder: string;
  let certificates: Certificates;
  let node: EtcdNode;

  beforeAll(async () => {
    folder = await makeFolder("etcd-tls");
    certificates = await makeCertificates(folder);
    const { ca, cert, key: own } = certificates;
    node = await startOne({
      scheme: "https",
      args: secureArgs(certificates, mutual),
      ready: async (endpoint) => {
        const client = new EtcdClient({ endpoints: [endpoint], tls: { ca, cert, key: own } });
        try {
          await client.call(methods.range, { key });
        } finally {
          await client.close();
        }
      },
    });
  });

  afterAll(async () => {
    await node.remove();
    await removeFolder(folder);
  });

  it("is spoken with the right certificates", async () => {
    const { ca, cert, key: own } = certificates;
    const tls = mutual ? { ca, cert, key: own } : { ca };
    expect(await ask({ endpoints: [node.endpoint], tls })).toMatchObject(answered);
  });

  it("a server that nobody vouches for is refused", async () => {
    expect(await ask({ endpoints: [node.endpoint] })).toMatchObject({
      status: status.unavailable,
      notDone: true,
      message: expect.stringMatching(/certificate/),
    });
  });

  it("is spoken by URL, where certificates are named by their files", async () => {
    const { ca } = certificates.files;
    const { cert, key: own } = certificates.clientFiles;
    const url = `etcds://127.0.0.1:${node.port}/?ca=${ca}${mutual ? `&cert=${cert}&key=${own}` : ""}`;
    await using locks = await connect(url);
    expect(await locks.request("url", (lock) => lock.token)).toEqual(expect.any(BigInt));
  });

  it("that fails is told at the lock with the reason", async () => {
    await using locks = await connect(
      etcdBackend({
        endpoints: [node.endpoint],
        tls: mutual ? { ca: certificates.ca } : {},
        patienceMs: 500,
      }),
    );
    const error: unknown = await locks.acquire("a").catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", message: expect.stringMatching(/certificate/) });
  });

  if (mutual) {
    it("a client without a certificate is refused", async () => {
      const { ca } = certificates;
      expect(await ask({ endpoints: [node.endpoint], tls: { ca } })).toMatchObject({ notDone: true });
    });
  }
});

describe("a cluster that asks who one is", () => {
  let node: EtcdNode;

  beforeAll(async () => {
    node = await startOne();
    await etcdctl(node, "user", "add", "root:secret");
    await etcdctl(node, "user", "grant-role", "root", "root");
    await etcdctl(node, "user", "add", "weak:word");
    await etcdctl(node, "auth", "enable");
  });

  afterAll(() => node.remove());

  const as = (user: string, password: string): EtcdClientOptions => ({
    endpoints: [node.endpoint],
    auth: { user, password },
  });

  it("takes those with the right password", async () => {
    expect(await ask(as("root", "secret"))).toMatchObject(answered);
  });

  it("refuses a wrong password, no password, and what a user may not do", async () => {
    expect(await ask(as("root", "wrong"))).toMatchObject({ status: status.invalidArgument, notDone: true });
    expect(await ask({ endpoints: [node.endpoint] })).toMatchObject({ notDone: true });
    expect(await ask(as("weak", "word"))).toMatchObject({ status: status.permissionDenied, notDone: true });
  });

  it("takes a client again whose token it has forgotten, with the next call", async () => {
    const client = new EtcdClient(as("root", "secret"));
    await client.call(methods.put, { key });
    await node.kill();
    await node.start();
    const outcomes: unknown[] = [];
    for (let turn = 0; turn < 3; turn++) {
      outcomes.push(
        await client.call(methods.put, { key }).then(
          () => "answered",
          (error: unknown) => error,
        ),
      );
    }
    expect(outcomes.at(-1)).toBe("answered");
    await client.close();
  });

  it("lets a client watch again whose token it has forgotten, though an earlier watch goes on", async () => {
    const client = new EtcdClient(as("root", "secret"));
    const begin = (): Promise<string> =>
      new Promise((resolve, reject) => {
        client
          .watch(
            { key },
            { created: () => resolve("created"), events() {}, ended: ({ reason }) => resolve(reason) },
          )
          .catch(reject);
      });
    expect(await begin()).toBe("created");
    await etcdctl(node, "--user=root:secret", "auth", "disable");
    await etcdctl(node, "auth", "enable");
    const outcomes = [await begin(), await begin()];
    expect(outcomes).toEqual([expect.stringMatching(/permission denied|invalid auth token/), "created"]);
    await client.close();
  });

  it("that stops asking takes those who give a password all the same", async () => {
    await etcdctl(node, "--user=root:secret", "auth", "disable");
    expect(await ask(as("root", "secret"))).toMatchObject(answered);
  });
});
