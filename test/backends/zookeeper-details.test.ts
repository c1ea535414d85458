/** What the contract does not ask of the ZooKeeper backend: names of nodes, paths, entries of others, URLs, sessions, examination. */
import * as fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TcpProxy } from "../../scripts/lib/zookeeper-for-tests.mjs";
import { entriesAmong, guidOf, parseNode, stemFor, usedUp } from "../../src/backends/zookeeper/nodes.ts";
import { lineage, pathsBelow } from "../../src/backends/zookeeper/paths.ts";
import {
  type ZooKeeperBackend,
  type ZooKeeperOptions,
  zookeeperBackend,
  zookeeperUrl,
} from "../../src/backends/zookeeper/index.ts";
import { connect, openBackend } from "../../src/connect.ts";
import { isExaminable } from "../../src/core/backend.ts";
import { hasCode } from "../../src/core/errors.ts";
import { openAcl, rawSession, started, type ZooRig } from "../helpers/zookeeper.ts";

describe("names of nodes", () => {
  const guid = guidOf("client.1");

  it("are Curator's, and come back as they were", () => {
    expect(guid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(stemFor({ mode: "write", weight: 1 }, guid, "mutex")).toBe(`_c_${guid}-lock-`);
    expect(stemFor({ mode: "read", weight: 1 }, guid, "read-write")).toBe(`_c_${guid}-__READ__`);
    for (const layout of ["mutex", "read-write"] as const) {
      for (const mode of ["read", "write"] as const) {
        for (const [weight, permits] of [
          [1, undefined],
          [1, 5],
          [17, 20],
        ] as const) {
          const name = `${stemFor({ mode, weight, permits }, guid, layout)}0000000042`;
          expect(parseNode(name)).toEqual({ name, guid, mode, weight, sequence: 42 });
        }
      }
    }
  });

  it.each([
    ["lock-0000000003", "write", 3],
    ["_c_11111111-2222-3333-4444-555555555555-lock-0000000000", "write", 0],
    ["_c_11111111-2222-3333-4444-555555555555-__READ__0000000009", "read", 9],
    ["_c_11111111-2222-3333-4444-555555555555-__WRIT__-000000005", "write", -5],
    ["lock--2147483648", "write", -(2 ** 31)],
    ["a1b2__lock__0000000012", "write", 12],
    ["something-else-0000000007", "write", 7],
  ])("of others are read: %s", (name, mode, sequence) => {
    expect(parseNode(name)).toMatchObject({ mode, sequence, weight: 1 });
  });

  it.each(["", "orders", "lock-", "lock-123", "42"])("that are no entries are not: %j", (name) => {
    expect(parseNode(name)).toBeNull();
  });

  it("are ordered by their sequences, as long as these say something", () => {
    const nodes = entriesAmong(["b-lock-0000000010", "x", "lock-0000000002", "a-lock-0000000009"]);
    expect(nodes.map(({ sequence }) => sequence)).toEqual([2, 9, 10]);
    expect(usedUp(nodes)).toBe(false);
    expect(usedUp(entriesAmong(["lock-2147483646"]))).toBe(false);
    expect(usedUp(entriesAmong(["lock-2147483647", "lock-0000000001"]))).toBe(true);
    expect(usedUp(entriesAmong(["lock--2147483648", "lock-0000000001"]))).toBe(true);
  });
});

describe("paths", () => {
  it("of different names are different, are allowed, and lead back to the name", () => {
    const paths = pathsBelow("/root/", "encoded");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (name) => {
        const path = paths.of(name);
        expect(path).toMatch(/^\/root\/[\x21-\x7e]+$/);
        expect(path.slice(6)).not.toMatch(/\/|^\.{1,2}$/);
        expect(paths.nameAt(path)).toBe(name);
      }),
    );
    for (const name of ["", ".", "..", "%", "%25", "a/b", "zookeeper"]) {
      expect(paths.nameAt(paths.of(name))).toBe(name);
    }
    expect(paths.nameAt("/root/%zz")).toBeNull();
    expect(paths.nameAt("/root/%41")).toBeNull();
  });

  it("may be the names themselves", () => {
    const paths = pathsBelow("/locks", "paths");
    expect(paths.of("orders/42")).toBe("/locks/orders/42");
    for (const name of ["", "/a", "a/", "a//b", "a/../b", "a\u0000", "a/lock-0000000001"]) {
      expect(() => paths.of(name), JSON.stringify(name)).toThrow(TypeError);
    }
    expect(() => pathsBelow("locks", "paths")).toThrow(TypeError);
    expect(() => pathsBelow("/zookeeper/locks", "encoded")).toThrow(TypeError);
    expect(lineage("/a/b/c")).toEqual(["/a", "/a/b", "/a/b/c"]);
  });
});

describe("a URL", () => {
  it("has hosts, a chroot and a login", () => {
    expect(zookeeperUrl("zookeeper://a:1,b:2/c/d")).toEqual({ hosts: "a:1,b:2/c/d" });
    const { auth } = zookeeperUrl("zookeeper://kim:s%40cret@a");
    expect(auth).toEqual({ scheme: "digest", secret: "kim:s@cret" });
  });

  it("speaks TLS with zookeepers://", () => {
    const url = "zookeepers://kim:x@a:1,b:2/c?servername=zk";
    expect(zookeeperUrl(url)).toMatchObject({ hosts: "a:1,b:2/c", tls: { servername: "zk" } });
    expect(zookeeperUrl("zookeepers://a:1").tls).toEqual({});
    expect(zookeeperUrl("zookeeper://a").tls).toBeUndefined();
  });

  it.each([
    ["zookeeper:", /zookeeper:\/\/host/],
    ["zookeeper://", /zookeeper:\/\/host/],
    ["zookeeper://user:secret@", /zookeeper:\/\/host/],
    ["zookeeper://a:99999", /not a host/],
    ["zookeeper://user:secret%@a", /login/],
    ["zookeeper://user:secret@a?tls=true", /no parameter "tls"/],
    ["zookeeper://user:secret@a?ca=/ca.pem", /zookeepers:\/\//],
    ["zookeepers://user:secret@a", /port/],
    ["zookeepers://user:secret@a:1,b", /port/],
    ["zookeepers://user:secret@a:1?ca=/not/there.pem", /file of ca .*\/not\/there\.pem/],
    ["zookeepers://user:secret@a:1?ca=", /file of ca/],
    ["zookeepers://user:secret@a:1?cert=/dev/null", /go together/],
    ["zookeepers://user:secret@a:1?key=/dev/null", /go together/],
    ["zookeepers://user:secret@a:1?cert=/dev/null&key=/dev/null", /PEM/],
    ["zookeepers://user:secret@a:1?ca=/dev/null", /PEM/],
    ["zookeepers://user:secret@a:1?servername=a&servername=b", /twice/],
  ])("is refused if it makes no sense, and no secret is shown: %s", async (url, why) => {
    const error: unknown = await openBackend(url).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(hasCode(error, "LOCK_INVALID")).toBe(true);
    expect(String(error)).toMatch(why);
    expect(String(error)).not.toContain("secret");
  });
});

describe("options", () => {
  it("of TLS that are no certificates are refused", () => {
    const tls = { cert: "no certificate", key: "no key" };
    expect(() => zookeeperBackend({ hosts: "h", tls })).toThrow(
      expect.objectContaining({ code: "LOCK_INVALID" }),
    );
  });
});

describe("with a server", () => {
  let rig: ZooRig;
  const open: Array<{ close(): Promise<void> }> = [];

  beforeAll(async () => {
    rig = await started(1, { maxSessionMs: 2_000 });
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()));
  });
  afterAll(() => rig.close());

  function backend(options: Partial<ZooKeeperOptions> = {}): ZooKeeperBackend {
    const one = zookeeperBackend({ hosts: rig.hosts, tickMs: 100, ...options });
    open.push(one);
    return one;
  }

  it("connects by URL, below a chroot", async () => {
    const looker = rawSession(rig.hosts);
    open.push(looker);
    await looker.create({ path: "/deep", data: Buffer.alloc(0), acl: openAcl, mode: "persistent" });
    const locks = await connect(`zookeeper://${rig.hosts}/deep`);
    open.push(locks);
    const lock = await locks.acquire("a");
    expect((await looker.getChildren("/deep/holdfast/a")).children).toHaveLength(1);
    expect(await lock.release()).toBe("released");
  });

  it("makes a chroot that is not there, and listings know nothing of it", async () => {
    const one = backend({ hosts: `${rig.hosts}/new/chroot`, root: "/locks" });
    const locks = await connect(one);
    open.push(locks);
    const lock = await locks.acquire("a");
    const looker = rawSession(rig.hosts);
    open.push(looker);
    expect((await looker.getChildren("/new/chroot/locks/a")).children).toHaveLength(1);
    expect(await one.queues("")).toEqual(["a"]);
    expect(await lock.release()).toBe("released");
    expect(() => zookeeperBackend({ hosts: "h/chroot", root: "locks" })).toThrow(TypeError);
  });

  it.each([
    [
      "credentials of a kind that there is not",
      { auth: { scheme: "odd", secret: "x" } },
      /credentials.*check the scheme/,
    ],
    [
      "an ACL for those who say who they are, by one who does not",
      { acl: [{ perms: 31, scheme: "auth", id: "" }] },
      /check acl/,
    ],
  ])("is refused with what to do about it: %s", async (_, options, why) => {
    const locks = await connect(backend({ root: "/refused", ...options }));
    open.push(locks);
    const error: unknown = await locks.acquire("a").catch((reason: unknown) => reason);
    expect(hasCode(error, "LOCK_UNAVAILABLE")).toBe(true);
    expect(String(error)).toMatch(why);
  });

  it("keeps a lock whose ttl is far longer than the servers' longest session", async () => {
    const locks = await connect(backend());
    open.push(locks);
    const lock = await locks.acquire("long", { ttl: "1m" });
    expect(lock.validForMs).toBeLessThan(2_000);
    await new Promise((resolve) => {
      setTimeout(resolve, 4_000);
    });
    expect(lock.held).toBe(true);
    expect(await lock.release()).toBe("released");
  });

  it("has one connection for each ttl, and one for all if it is told so", async () => {
    const proxies = [
      await TcpProxy.start(rig.servers[0]?.port ?? 0),
      await TcpProxy.start(rig.servers[0]?.port ?? 0),
    ];
    open.push(...proxies);
    for (const [index, session] of [undefined, "1s"].entries()) {
      const one = backend({ hosts: `127.0.0.1:${proxies[index]?.port}`, session });
      const locks = await connect(one);
      for (const ttl of [310, 300, 600, 900, 1_500]) await locks.acquire(`ttl ${ttl}`, { ttl });
      expect(proxies[index]?.connections).toBe(session === undefined ? 4 : 1);
      await locks.close();
    }
  });

  it("is refused by nodes of others with LOCK_UNAVAILABLE and what to do", async () => {
    const root = "/private";
    const owner = await connect(backend({ root, auth: { scheme: "digest", secret: "kim:secret" } }));
    open.push(owner);
    const lock = await owner.acquire("a");
    const stranger = await connect(backend({ root }));
    open.push(stranger);
    const error: unknown = await stranger.acquire("a", { wait: 1_000 }).catch((reason: unknown) => reason);
    expect(hasCode(error, "LOCK_UNAVAILABLE")).toBe(true);
    expect(String(error)).toMatch(/auth/);
    expect(lock.held).toBe(true);
  });

  it("shows entries of others, and takes them out by force", async () => {
    const [looker, one] = [rawSession(rig.hosts), backend({ names: "paths", root: "/foreign" })];
    open.push(looker);
    for (const [path, mode] of [
      ["/foreign", "persistent"],
      ["/foreign/a", "persistent"],
      ["/foreign/a/lock-", "ephemeral-sequential"],
    ] as const) {
      await looker.create({ path, data: Buffer.from("10.0.0.7"), acl: openAcl, mode });
    }
    const [entry] = await one.list("a");
    expect(entry).toMatchObject({ id: "lock-0000000000", mode: "write", owner: { host: "10.0.0.7" } });
    expect(await one.queues("")).toEqual(["a"]);
    expect(await one.remove("a", entry?.id ?? "", true, entry?.seq)).toBe(true);
    expect(await one.list("a")).toEqual([]);
  });

  it("examines its servers", async () => {
    const one = backend();
    expect(isExaminable(one)).toBe(true);
    const findings = await one.examine();
    const seen = new Map(findings.map(({ about, level, seen: what }) => [about, `${level}: ${what}`]));
    const port = rig.servers[0]?.port;
    expect(seen.get(`server 127.0.0.1:${port}`)).toMatch(/^ok: ZooKeeper 3\.\d+\.\d+, standalone$/);
    expect(seen.get("ensemble")).toMatch(/^warning: /);
    expect(seen.get(`times of 127.0.0.1:${port}`)).toBe("ok: a tick of 100 ms, sessions of 200 to 2000 ms");
    expect(seen.get("access")).toMatch(/^warning: /);
    expect([...seen.keys()].some((about) => about.startsWith("session 0x"))).toBe(true);
    const short = await backend({ tickMs: 50 }).examine();
    expect(short.some(({ level, todo }) => level === "warning" && todo?.includes("tickMs: 100"))).toBe(true);
  });
});
