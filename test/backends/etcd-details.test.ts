/** What is particular to etcd: how many proposals and leases locks cost, how names become keys, what doctor sees. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type EtcdNode, TcpProxy } from "../../scripts/lib/for-tests.mjs";
import { type EtcdBackend, etcdBackend, type EtcdOptions } from "../../src/backends/etcd/index.ts";
import { EtcdClient } from "../../src/backends/etcd/client/client.ts";
import type { WatchEvent } from "../../src/backends/etcd/client/messages/watch.ts";
import { Calls } from "../../src/backends/etcd/calls.ts";
import { hasBug } from "../../src/backends/etcd/examine.ts";
import { Leases } from "../../src/backends/etcd/lease.ts";
import { connect, openBackend } from "../../src/connect.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { etcdctl, startOne } from "../helpers/etcd.ts";
import { ask, keys, leases } from "../helpers/etcd-store.ts";

let node: EtcdNode;
let opened: (LockManager | EtcdBackend)[] = [];

beforeAll(async () => {
  node = await startOne();
});

afterAll(() => node.remove());

afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()));
  opened = [];
  await expect.poll(() => leases(node.endpoint), { timeout: 8_000 }).toEqual([]);
});

function backend(options: EtcdOptions = {}): EtcdBackend {
  const made = etcdBackend({ endpoints: [node.endpoint], prefix: "d/", ...options });
  opened.push(made);
  return made;
}

async function manager(options: EtcdOptions = {}): Promise<LockManager> {
  const made = await connect(etcdBackend({ endpoints: [node.endpoint], prefix: "d/", ...options }));
  opened.push(made);
  return made;
}

const owner = { client: "c", host: "h", pid: 1 };
const entry = (id: string, ttlMs: number) => ({ id, owner, mode: "write", weight: 1, ttlMs }) as const;
const proposals = (): Promise<number> => node.metric("etcd_server_proposals_committed_total");

/** All keys below a prefix that were ever written, by the history of the store. */
async function everUsed(prefix: string): Promise<ReadonlySet<string>> {
  const client = new EtcdClient({ endpoints: [node.endpoint] });
  const used = new Set<string>();
  const last = `${prefix}~last`;
  await new Promise<void>((resolve, reject) => {
    const range = { key: Buffer.from(prefix), rangeEnd: Buffer.from(prefix.replace(/\/$/, "0")) };
    const listener = {
      created: () => void etcdctl(node, "put", last, ""),
      events: (events: readonly WatchEvent[]) => {
        for (const { kv } of events) used.add(Buffer.from(kv?.key ?? []).toString());
        if (used.delete(last)) resolve();
      },
      ended: () => reject(new Error("the watch ended")),
    };
    client.watch({ ...range, startRevision: 1n }, listener).catch(reject);
  });
  await Promise.all([client.close(), etcdctl(node, "del", last)]);
  return used;
}

describe("cost", () => {
  it("a pair of acquire and release takes two proposals, also when there are others to wait for", async () => {
    const locks = await manager();
    await locks.request("warm", () => {});
    const before = await proposals();
    for (let turn = 0; turn < 20; turn++) await locks.request("free", () => {});
    const between = await proposals();
    expect(between - before).toBe(40);
    await Promise.all(Array.from({ length: 20 }, () => locks.request("busy", () => sleep(1))));
    expect((await proposals()) - between).toBe(40);
  });

  it("what one tick asks for travels together, on queues of their own", async () => {
    const client = backend();
    const ids = Array.from({ length: 100 }, (_, turn) => `t.${turn}`);
    const later = ids.map((_, turn) => `t.${turn + 1_000}`);
    await client.append("warm", entry("w", 30_000));
    const before = await proposals();
    const made = await Promise.all(ids.map((id) => client.append(`q-${id}`, entry(id, 30_000))));
    const between = await proposals();
    expect(between - before).toBe(2);
    expect(new Set(made.map((snapshot) => snapshot?.ahead.count))).toEqual(new Set([0]));
    // A waiter behind each, and the first ones leave, in one tick.
    const [waiters, left] = await Promise.all([
      Promise.all(ids.map((id, turn) => client.append(`q-${id}`, entry(later[turn] ?? "", 30_000)))),
      Promise.all(ids.map((id) => client.remove(`q-${id}`, id))),
    ]);
    expect((await proposals()) - between).toBe(4);
    expect(new Set(left)).toEqual(new Set([true]));
    for (const [turn, id] of ids.entries()) {
      const [only, ...others] = await client.list(`q-${id}`);
      expect([only?.id, others]).toEqual([later[turn], []]);
      expect(only?.seq).toBe(waiters[turn]?.self.seq);
      expect(only?.seq).toBeGreaterThan(made[turn]?.self.seq ?? 0n);
    }
    await Promise.all(ids.map((id, turn) => client.remove(`q-${id}`, later[turn] ?? "")));
    await client.remove("warm", "w");
    expect(await keys(node.endpoint, "d/")).toEqual([]);
  });

  it("one whose lease is gone does not fail those that travel with it", async () => {
    const client = backend();
    await client.append("a", entry("a", 5_000));
    const [lease = ""] = await leases(node.endpoint);
    await client.append("b", entry("b", 30_000));
    await ask(node.endpoint, "lease/revoke", { ID: lease });
    const [again, other, left] = await Promise.all([
      client.append("c", entry("c", 5_000)),
      client.append("d", entry("d", 30_000)),
      client.remove("b", "b"),
    ]);
    expect([again?.ahead.count, other?.ahead.count, left]).toEqual([0, 0, true]);
    expect(await client.list("c")).toMatchObject([{ id: "c" }]);
    expect(await client.list("d")).toMatchObject([{ id: "d" }]);
    await Promise.all([client.remove("c", "c"), client.remove("d", "d")]);
  });

  it("keys are used again: a lock that is taken often does not leave more and more of them in the history", async () => {
    const locks = await manager();
    for (let turn = 0; turn < 75; turn++) await locks.request("hot", () => {});
    // Ids look different from the thousandth on.
    await Promise.all(Array.from({ length: 1_000 }, (_, turn) => locks.request(`cold ${turn}`, () => {})));
    for (let turn = 0; turn < 75; turn++) await locks.request("hot", () => {});
    expect((await everUsed("d/hot/")).size).toBe(64);
  });

  it("more entries than share keys at once cost no more, and none is put twice", async () => {
    const client = backend();
    const ids = Array.from({ length: 150 }, (_, turn) => `me.${turn}`);
    await client.append("warm", entry("w", 30_000));
    const before = await proposals();
    const made = await Promise.all(ids.map((id) => client.append("q", entry(id, 30_000))));
    expect((await proposals()) - before).toBe(150);
    expect(new Set(made.map((snapshot) => snapshot?.self.seq)).size).toBe(150);
    const other = backend();
    // Another client that asks for the same ids finds them, wherever they are.
    const found = await Promise.all(ids.map((id) => other.append("q", entry(id, 30_000))));
    expect(found.map((snapshot) => snapshot?.self.seq)).toEqual(made.map((snapshot) => snapshot?.self.seq));
    await Promise.all([client.remove("warm", "w"), ...ids.map((id) => client.remove("q", id))]);
    expect(await keys(node.endpoint, "d/")).toEqual([]);
  });

  it("all entries of one ttl share a lease; renewing them writes nothing", async () => {
    const client = backend();
    const appends = Array.from({ length: 50 }, (_, turn) =>
      client.append(`q${turn}`, entry(`e${turn}`, 30_000)),
    );
    const made = await Promise.all(appends);
    expect(await leases(node.endpoint)).toHaveLength(1);
    const before = await proposals();
    const answers = await client.renew(
      made.map((snapshot, turn) => ({
        queue: `q${turn}`,
        id: `e${turn}`,
        seq: snapshot?.self.seq ?? 0n,
        ttlMs: 30_000,
      })),
    );
    expect(new Set(answers.map(({ outcome }) => outcome))).toEqual(new Set(["renewed"]));
    expect((await proposals()) - before).toBe(0);
    await Promise.all(made.map((_, turn) => client.remove(`q${turn}`, `e${turn}`)));
  });

  it("a lease that is used again and again is granted once", async () => {
    const locks = await manager();
    for (let turn = 0; turn < 12; turn++) {
      await locks.request("a", { ttl: 2_000 }, () => {});
      await sleep(250);
    }
    expect(await leases(node.endpoint)).toHaveLength(1);
  });
});

describe("lives", () => {
  it("a lease that has ended is not kept in mind", async () => {
    const client = new EtcdClient({ endpoints: [node.endpoint] });
    const held = new Leases(new Calls(client, systemClock, 1_000), systemClock, () => {});
    const lease = await held.forTtl(5_000);
    expect(held.find(lease.id)).toBe(lease);
    await ask(node.endpoint, "lease/revoke", { ID: `${lease.id}` });
    expect(await held.keep(lease)).toBe(false);
    expect(held.find(lease.id)).toBeUndefined();
    await client.close();
  });

  it("an entry that nobody renews ends although its neighbours on the same lease are renewed", async () => {
    const client = backend();
    const [kept, left] = [
      await client.append("kept", entry("a", 2_000)),
      await client.append("left", entry("b", 2_000)),
    ];
    expect([kept?.ahead.count, left?.ahead.count]).toEqual([0, 0]);
    expect(await leases(node.endpoint)).toHaveLength(1);
    for (let turn = 0; turn < 8; turn++) {
      await sleep(400);
      const seq = kept?.self.seq ?? 0n;
      expect(await client.renew([{ queue: "kept", id: "a", seq, ttlMs: 2_000 }])).toMatchObject([
        { outcome: "renewed" },
      ]);
    }
    expect(await keys(node.endpoint, "d/")).toEqual(["d/kept/a"]);
    await client.remove("kept", "a");
  });

  it("a ttl below the server's minimum is the minimum, and shown", async () => {
    const strict = await startOne({ args: ["--heartbeat-interval=100", "--election-timeout=1000"] });
    try {
      const client = etcdBackend({ endpoints: [strict.endpoint] });
      const made = await client.append("a", entry("x", 500));
      expect(made?.self.expiresInMs).toBeGreaterThan(1_500);
      expect(made?.self.expiresInMs).toBeLessThanOrEqual(2_000);
      await client.remove("a", "x");
      await client.close();
    } finally {
      await strict.remove();
    }
  });

  it("an append whose answer was lost, and that is not wanted any more, leaves nothing although the client goes on", async () => {
    const proxy = await TcpProxy.start(node.port);
    const locks = await manager({ endpoints: [`http://127.0.0.1:${proxy.port}`], callMs: 500, pingMs: 400 });
    const other = await locks.acquire("other", { ttl: 1_000 });
    proxy.down.swallow = true;
    const request = locks.acquire("a", { ttl: 1_000, wait: 300 });
    await expect(request).rejects.toMatchObject({ name: "LockError" });
    proxy.heal();
    await expect.poll(() => keys(node.endpoint, "d/a/"), { timeout: 5_000 }).toEqual([]);
    await other.release().catch(() => {});
    await locks.close();
    await proxy.close();
  });
});

describe("appends whose answers were lost", () => {
  it("are found again, and what is found stays", async () => {
    const proxy = await TcpProxy.start(node.port);
    const client = backend({ endpoints: [`http://127.0.0.1:${proxy.port}`], callMs: 300, pingMs: 250 });
    const other = await client.append("other", entry("o", 10_000));
    await client.remove("other", "o");
    proxy.down.swallow = true;
    await expect(client.append("a", entry("x", 10_000))).rejects.toMatchObject({
      code: "LOCK_OUTCOME_UNKNOWN",
    });
    proxy.heal();
    const found = await client.append("a", entry("x", 10_000));
    expect(found?.self.seq).toBeGreaterThan(other?.self.seq ?? 0n);
    // Its lease takes no new entries, but must not be given back while it has one.
    await sleep(300);
    expect(await keys(node.endpoint, "d/a/")).toEqual(["d/a/x"]);
    const renewal = { queue: "a", id: "x", seq: found?.self.seq ?? 0n, ttlMs: 10_000 };
    expect(await client.renew([renewal])).toMatchObject([{ outcome: "renewed" }]);
    expect(await client.remove("a", "x")).toBe(true);
    await client.close();
    await proxy.close();
  });
});

describe("keys", () => {
  it("are below the prefix, with names that cannot lie within each other", async () => {
    const locks = await manager();
    const held = await Promise.all(["a", "a/b", "50%"].map((name) => locks.acquire(name)));
    const found = await keys(node.endpoint, "d/");
    expect(found.map((key) => key.replace(/[^/]+$/, "…"))).toEqual(["d/50%25/…", "d/a%2Fb/…", "d/a/…"]);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it("say who made them, in words that etcdctl shows", async () => {
    const locks = await manager();
    const lock = await locks.acquire("a", { metadata: "nightly" });
    const shown = await etcdctl(node, "get", "--prefix", "--print-value-only", "d/a/");
    expect(JSON.parse(shown)).toMatchObject({ owner: { pid: process.pid }, weight: 1, metadata: "nightly" });
    await lock.release();
  });
});

describe("ownershipGuard", () => {
  const put = (guard: { key: string; createRevision: bigint }): Promise<string> =>
    ask(node.endpoint, "kv/txn", {
      compare: [
        {
          key: Buffer.from(guard.key).toString("base64"),
          target: "CREATE",
          result: "EQUAL",
          create_revision: `${guard.createRevision}`,
        },
      ],
      success: [{ request_put: { key: "dw==", value: "eA==" } }],
    });

  it("lets a transaction through while the lock is held, and not after", async () => {
    const client = etcdBackend({ endpoints: [node.endpoint], prefix: "d/" });
    const locks = await connect(client);
    opened.push(locks);
    const lock = await locks.acquire("a");
    const guard = client.ownershipGuard(lock);
    expect(guard).toMatchObject({ target: "CREATE", result: "EQUAL", createRevision: lock.token });
    expect(await put(guard)).toContain('"succeeded":true');
    await lock.release();
    expect(await put(guard)).not.toContain('"succeeded":true');
    expect(() => client.ownershipGuard(lock)).toThrow(expect.objectContaining({ code: "LOCK_LOST" }));
  });
});

describe("URLs", () => {
  it("name hosts, prefix and the style of names", async () => {
    const { port } = node;
    const locks = await connect(`etcd://127.0.0.1:${port},localhost:${port}/d/?names=plain`);
    opened.push(locks);
    const lock = await locks.acquire("x/y");
    expect(await keys(node.endpoint, "d/x/y/")).toHaveLength(1);
    await lock.release();
  });

  it.each([
    "etcd:",
    "etcd://",
    "etcd://h,,h",
    "etcd://h?nope=1",
    "etcd://h?names=odd",
    "etcd://u:secret@h/?nope=1",
    "etcd://u:secret%zz@h/",
    "etcd://u:secret@h/%zz",
    "etcd://h?ca=/nowhere.pem",
    "etcd://h?names=plain&names=escaped",
    "etcds://h?ca=/nowhere.pem",
    "etcds://h?ca=package.json",
    "etcds://h?cert=package.json",
  ])("%s is refused, without showing a password", async (url) => {
    const refusal = await openBackend(url).then(
      () => "it was taken",
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({ code: "LOCK_INVALID" });
    expect(String(refusal)).not.toContain("secret");
  });
});

describe("options", () => {
  it("of another kind than they should be are refused", () => {
    const given = (options: object): unknown => etcdBackend({ endpoints: ["h"], ...options });
    const endpoints = ["h:1", [], ["ftp://h"], ["http://h/path"]].map((each) => ({ endpoints: each }));
    const tls = { cert: "no certificate", key: "no key" };
    for (const options of [{ tls }, { names: "odd" }, { callMs: 0 }, { pingMs: Number.NaN }, ...endpoints]) {
      expect(() => given(options)).toThrow(expect.objectContaining({ code: "LOCK_INVALID" }));
    }
  });
});

describe("examine", () => {
  it("says how the cluster is", async () => {
    const findings = await backend().examine();
    const about = (word: string) => findings.filter((finding) => finding.about.includes(word));
    expect(about("members")).toMatchObject([{ level: "warning", seen: "one: n0" }]);
    expect(about("leader")).toMatchObject([{ level: "ok" }]);
    expect(about("alarms")).toMatchObject([{ level: "ok", seen: "none" }]);
    expect(about("size")).toMatchObject([{ level: "ok", seen: expect.stringMatching(/MB/) }]);
    expect(about("version").length).toBeGreaterThan(0);
  });

  it("names members that do not answer", async () => {
    const findings = await backend({ endpoints: [node.endpoint, "http://127.0.0.1:1"] }).examine();
    expect(findings).toContainEqual(
      expect.objectContaining({ level: "warning", about: "member http://127.0.0.1:1" }),
    );
  });

  it("knows in which versions a bug is fixed", () => {
    const fixedIn = ["3.4.31", "3.5.13"];
    const versions = ["3.3.27", "3.4.30", "3.4.31", "3.5.0", "3.5.13", "3.5.30", "3.6.0"];
    expect(versions.filter((version) => hasBug(version, fixedIn))).toEqual(["3.3.27", "3.4.30", "3.5.0"]);
  });
});
