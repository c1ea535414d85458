/** The client against a real server: nodes, watches, sessions that move, freeze, expire and are left. */
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TcpProxy } from "../../scripts/lib/zookeeper-for-tests.mjs";
import { hasZooCode, type WatchEvent, type ZooSession } from "../../src/backends/zookeeper/client/index.ts";
import { FrameProxy } from "../helpers/frame-proxy.ts";
import { openAcl, rawSession, started, type ZooRig } from "../helpers/zookeeper.ts";

const none = Buffer.alloc(0);
let rig: ZooRig;
let made = 0;
const open: Array<{ close(): Promise<void> }> = [];

function session(hosts = rig.hosts, changes: Parameters<typeof rawSession>[1] = {}): ZooSession {
  const one = rawSession(hosts, changes);
  open.push(one);
  return one;
}

async function proxy(): Promise<TcpProxy> {
  const one = await TcpProxy.start(rig.servers[0]?.port ?? 0);
  open.push(one);
  return one;
}

function name(): string {
  return `/node-${++made}`;
}

const node = (
  path: string,
  mode: "ephemeral" | "ephemeral-sequential" | "container" | "persistent" | "ttl",
) => ({
  path,
  mode,
  data: Buffer.from("data"),
  acl: openAcl,
});

async function until(what: string, isSo: () => boolean | Promise<boolean>, limitMs = 5_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await sleep(10);
  }
}

beforeAll(async () => {
  rig = await started(1);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});
afterAll(() => rig.close());

describe("nodes", () => {
  it("are made, read, found and deleted", async () => {
    const zoo = session();
    const path = name();
    const made1 = await zoo.create(node(path, "persistent"));
    expect(made1.path).toBe(path);
    const read = await zoo.getData(path);
    expect(read.data.toString()).toBe("data");
    expect(read.stat.czxid).toBe(made1.stat.czxid);
    expect(typeof read.stat.czxid).toBe("bigint");
    await expect(zoo.create(node(path, "persistent"))).rejects.toSatisfy((e) => hasZooCode(e, "nodeExists"));
    const first = await zoo.create(node(`${path}/n-`, "ephemeral-sequential"));
    const second = await zoo.create(node(`${path}/n-`, "ephemeral-sequential"));
    expect([first.path, second.path]).toEqual([`${path}/n-0000000000`, `${path}/n-0000000001`]);
    expect(first.stat.ephemeralOwner).toBe(zoo.id);
    expect((await zoo.getChildren(path)).children.toSorted()).toEqual(["n-0000000000", "n-0000000001"]);
    await expect(zoo.delete(path)).rejects.toSatisfy((error) => hasZooCode(error, "notEmpty"));
    await zoo.delete(first.path);
    expect(await zoo.exists(first.path)).toBeNull();
    await expect(zoo.getData(first.path)).rejects.toSatisfy((error) => hasZooCode(error, "noNode"));
    await zoo.sync("/");
  });

  it("as containers go when they are empty, and with a ttl when it is over", async () => {
    const zoo = session();
    const [container, aged] = [name(), name()];
    await zoo.create(node(container, "container"));
    await zoo.create({ ...node(aged, "ttl"), ttlMs: 100 });
    const child = await zoo.create(node(`${container}/c`, "ephemeral"));
    await zoo.delete(child.path);
    await until("both are gone", async () => !(await zoo.exists(container)) && !(await zoo.exists(aged)));
  });

  it("answers in the order of the requests, however many are under way", async () => {
    const zoo = session();
    const path = name();
    await zoo.create(node(path, "persistent"));
    const answers = await Promise.all(
      Array.from({ length: 2_000 }, () => zoo.create(node(`${path}/`, "ephemeral-sequential"))),
    );
    const paths = answers.map((answer) => answer.path);
    expect(paths).toEqual(paths.toSorted());
    expect((await zoo.getChildren(path)).children).toHaveLength(2_000);
  });

  it("in a multi are made all or none", async () => {
    const zoo = session();
    const [a, b] = [name(), name()];
    const done = await zoo.multi([
      { op: "create", node: node(a, "persistent") },
      { op: "check", path: a },
      { op: "create", node: node(b, "container") },
    ]);
    expect(done.map(({ op }) => op)).toEqual(["create", "check", "create"]);
    const failed = await zoo.multi([
      { op: "delete", path: a },
      { op: "check", path: `${a}/missing` },
    ]);
    expect(failed.map(({ op }) => op)).toEqual(["error", "error"]);
    const second = failed[1];
    expect(second?.op === "error" && hasZooCode(second.error, "noNode")).toBe(true);
    expect(await zoo.exists(a)).not.toBeNull();
  });

  it("below a chroot have paths without it", async () => {
    const [outer, chroot] = [session(), name()];
    await outer.create(node(chroot, "persistent"));
    const inner = session(rig.hosts + chroot);
    const seen: WatchEvent[] = [];
    expect((await inner.create(node("/x-", "ephemeral-sequential"))).path).toBe("/x-0000000000");
    await inner.exists("/x-0000000000", (event) => seen.push(event));
    expect((await inner.getChildren("/")).children).toEqual(["x-0000000000"]);
    await outer.delete(`${chroot}/x-0000000000`);
    await until("the event", () => seen.length > 0);
    expect(seen).toEqual([{ type: "deleted", path: "/x-0000000000" }]);
  });

  it("with an ACL for a user are for that user alone", async () => {
    const path = name();
    const owner = session(rig.hosts, { auth: [{ scheme: "digest", secret: "kim:secret" }] });
    await owner.create({ ...node(path, "persistent"), acl: [{ perms: 31, scheme: "auth", id: "" }] });
    expect((await owner.getData(path)).data.toString()).toBe("data");
    await expect(session().getData(path)).rejects.toSatisfy((error) => hasZooCode(error, "noAuth"));
  });
});

describe("watches", () => {
  it("tell once, of what they stand on", async () => {
    const [zoo, other] = [session(), session()];
    const path = name();
    const seen: string[] = [];
    await zoo.exists(path, (event) => seen.push(`missing ${event.type}`));
    await other.create(node(path, "persistent"));
    await zoo.getData(path, (event) => seen.push(`data ${event.type}`));
    await zoo.getChildren(path, (event) => seen.push(`children ${event.type}`));
    const ignored = (): unknown => seen.push("ended");
    await zoo.getData(path, ignored);
    zoo.unwatch(path, ignored);
    await other.create(node(`${path}/c`, "ephemeral"));
    await other.delete(`${path}/c`);
    await other.delete(path);
    await zoo.sync(path);
    expect(seen).toEqual(["missing created", "children children", "data deleted"]);
  });

  it("live through a change of connection, and tell what happened meanwhile", async () => {
    const cut = await proxy();
    const [zoo, other] = [session(`127.0.0.1:${cut.port}`), session()];
    const [gone, stays] = [name(), name()];
    const seen: string[] = [];
    await other.create(node(gone, "persistent"));
    await other.create(node(stays, "persistent"));
    for (const path of [gone, stays]) await zoo.getData(path, (event) => seen.push(`${event.type} ${path}`));
    cut.refuse = true;
    cut.resetAll();
    await until("suspended", () => zoo.state === "suspended");
    await other.delete(gone);
    cut.refuse = false;
    await until("the event", () => seen.length > 0);
    await other.delete(stays);
    await until("the other event", () => seen.length > 1);
    expect(seen).toEqual([`deleted ${gone}`, `deleted ${stays}`]);
  });

  it("that are too many for one message live through it, too", async () => {
    const cut = await proxy();
    const [zoo, other] = [session(`127.0.0.1:${cut.port}`), session()];
    const paths = Array.from({ length: 3_000 }, () => `${name()}${"x".repeat(400)}`);
    const seen: string[] = [];
    await Promise.all(paths.map((path) => zoo.exists(path, (event) => seen.push(event.path))));
    const { id } = zoo;
    const states: string[] = [];
    zoo.onState((state) => states.push(state));
    cut.resetAll();
    await until("connected again", () => states.length > 1);
    await zoo.sync("/");
    expect(states).toEqual(["suspended", "connected"]);
    expect(zoo.id).toBe(id);
    const [first = "", last = ""] = [paths[0], paths.at(-1)];
    for (const path of [first, last]) await other.create(node(path, "ephemeral"));
    await until("both events", () => seen.length > 1);
    expect(seen).toEqual([first, last]);
  });
});

describe("a session", () => {
  it("reaches a server that answers behind others that do not, before its requests have waited for too long", async () => {
    const holes = [await proxy(), await proxy()];
    for (const hole of holes) hole.blackhole();
    const ports = [...holes.map(({ port }) => port), rig.servers[0]?.port];
    const zoo = session(ports.map((port) => `127.0.0.1:${port}`).join(), {
      sessionMs: 30_000,
      reachMs: 2_000,
      random: () => 0,
    });
    await zoo.sync("/");
  });

  it("keeps its id and its nodes when the connection breaks; a write that was under way is unknown, a question is asked again", async () => {
    const cut = await proxy();
    const [zoo, other] = [session(`127.0.0.1:${cut.port}`), session()];
    const path = name();
    await zoo.create(node(path, "ephemeral"));
    const { id } = zoo;
    cut.up.swallow = true;
    const lost = zoo.create(node(name(), "ephemeral")).catch((error: unknown) => error);
    const found = zoo.exists(path);
    await sleep(20);
    cut.heal();
    const error = await lost;
    expect(hasZooCode(error, "connectionLoss") && !error.unsent).toBe(true);
    expect(await found).not.toBeNull();
    expect(zoo.id).toBe(id);
    expect((await other.exists(path))?.ephemeralOwner).toBe(id);
  });

  it("gives up a server that is frozen after two thirds of its length, and goes to another", async () => {
    const [frozen, healthy] = [await proxy(), await proxy()];
    const zoo = session(`127.0.0.1:${frozen.port},127.0.0.1:${healthy.port}`, {
      sessionMs: 1_200,
      random: () => 0,
    });
    await zoo.sync("/");
    const { id } = zoo;
    frozen.blackhole();
    const begun = performance.now();
    const pending = zoo.delete(name()).catch((error: unknown) => error);
    expect(hasZooCode(await pending, "connectionLoss")).toBe(true);
    const tookMs = performance.now() - begun;
    expect(tookMs).toBeGreaterThan(600);
    expect(tookMs).toBeLessThan(1_150);
    await zoo.sync("/");
    expect(zoo.id).toBe(id);
    expect(healthy.connections).toBe(1);
  });

  it("gives up a server that goes on giving pongs and answers nothing else, and goes to another", async () => {
    const mute = await FrameProxy.start(rig.servers[0]?.port ?? 0);
    open.push(mute);
    const healthy = await proxy();
    const zoo = session(`127.0.0.1:${mute.port},127.0.0.1:${healthy.port}`, {
      sessionMs: 1_200,
      random: () => 0,
    });
    await zoo.sync("/");
    const { id } = zoo;
    mute.mute = true;
    const pending = zoo.delete(name()).catch((error: unknown) => error);
    expect(hasZooCode(await pending, "connectionLoss")).toBe(true);
    await zoo.sync("/");
    expect(zoo.id).toBe(id);
    expect(healthy.connections).toBe(1);
  });

  it("that cannot be reached is lost by our own clock, and told when a server can be reached again", async () => {
    const cut = await proxy();
    // The server is frozen: it cannot end the session itself.
    const zoo = session(`127.0.0.1:${cut.port}`, { sessionMs: 1_000 });
    const other = session();
    const path = name();
    await zoo.create(node(path, "ephemeral"));
    cut.refuse = true;
    cut.resetAll();
    rig.servers[0]?.pause();
    await until("lost", () => zoo.state === "lost", 2_000);
    await expect(zoo.sync("/")).rejects.toSatisfy((error) => hasZooCode(error, "sessionExpired"));
    cut.refuse = false;
    rig.servers[0]?.resume();
    await until("its node is gone", async () => (await other.exists(path)) === null);
  });

  it("that the servers have ended is lost when they say so", async () => {
    const cut = await proxy();
    const zoo = session(`127.0.0.1:${cut.port}`, { sessionMs: 400 });
    await zoo.create(node(name(), "ephemeral"));
    cut.blackhole();
    await sleep(1_200);
    cut.heal();
    await until("lost", () => zoo.state === "lost");
  });

  it("counts its life from before the last write that was answered", async () => {
    const zoo = session(rig.hosts, { sessionMs: 2_000, reportMs: 50 });
    await zoo.sync("/");
    const before = zoo.provenUntil;
    await sleep(400);
    await zoo.sync("/");
    expect(zoo.provenUntil).toBe(before);
    const sentAt = performance.now();
    await zoo.multi([{ op: "check", path: "/" }]);
    expect(zoo.provenUntil).toBeGreaterThan(before);
    // A sign of life counts when the leader must have heard of it.
    expect(zoo.provenUntil).toBeLessThanOrEqual(sentAt + 2_000 - 50 + 10);
    expect(zoo.provenUntil).toBeGreaterThan(sentAt + 2_000 - 50 - 2_000 / 12 - 100);
  });

  it("that is closed takes its nodes along; one that is left goes after the time that was said", async () => {
    const [zoo, left, other] = [session(), session(rig.hosts, { sessionMs: 30_000 }), session()];
    const [a, b] = [name(), name()];
    await zoo.create(node(a, "ephemeral"));
    await left.create(node(b, "ephemeral"));
    await Promise.all([zoo.close(), left.leave(500)]);
    expect(await other.exists(a)).toBeNull();
    expect(await other.exists(b)).not.toBeNull();
    await until("the node of the one that was left is gone", async () => !(await other.exists(b)), 1_500);
  });

  it("fails requests unsent when no server can be reached", async () => {
    const zoo = session("127.0.0.1:1", { reachMs: 200 });
    const error: unknown = await zoo.sync("/").catch((reason: unknown) => reason);
    expect(hasZooCode(error, "connectionLoss") && error.unsent).toBe(true);
  });

  it("is over when its credentials are refused", async () => {
    const zoo = session(rig.hosts, { auth: [{ scheme: "no-such-scheme", secret: "x" }] });
    await until("lost", () => zoo.state === "lost");
  });

  it("makes pauses before it comes back to a server that takes it and then serves nothing", async () => {
    const cut = await FrameProxy.start(rig.servers[0]?.port ?? 0);
    open.push(cut);
    const zoo = session(`127.0.0.1:${cut.port}`);
    await zoo.sync("/");
    cut.mute = true;
    cut.endWhenMute = true;
    const begun = performance.now();
    for (let tries = 0; tries < 2; tries++) await zoo.sync("/").catch(() => {});
    // Each is asked four times, on a new connection each time: twice at once, then after 10 ms, 20 ms, 40 ms and so on, each by half at least.
    expect(cut.accepted).toBe(8);
    expect(performance.now() - begun).toBeGreaterThan(100);
  });

  it("goes to another server when one speaks on and on and never says welcome", async () => {
    const server = createServer((socket) => {
      const trickle = setInterval(() => socket.write(Buffer.alloc(1)), 50);
      socket.on("error", () => {}).on("close", () => clearInterval(trickle));
      socket.write(Buffer.from([0, 0, 0xff, 0xff]));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const zoo = session(`127.0.0.1:${port},${rig.hosts}`, { reachMs: 2_000, random: () => 0 });
    await zoo.sync("/");
    server.close();
  });

  it("ends a connection on which a server speaks nonsense", async () => {
    const server = createServer((socket) => {
      socket
        .on("error", () => {})
        .write(Buffer.concat([Buffer.from([0, 0, 0, 3]), none, Buffer.from("abc")]));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const zoo = session(`127.0.0.1:${port}`, { reachMs: 200 });
    await expect(zoo.sync("/")).rejects.toSatisfy((error) => hasZooCode(error, "connectionLoss"));
    await zoo.close();
    server.close();
  });
});
