/** What locks in a SQL database survive: crashes of the server, cut connections, silence, lost answers. The same for all databases. */
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { TcpProxy } from "../../scripts/lib/tcp-proxy.mjs";
import { connect } from "../../src/connect.ts";
import { type Backend, isExaminable } from "../../src/core/backend.ts";
import { hasCode } from "../../src/core/errors.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { blockedDuring } from "./blocked-loop.ts";
import { MuteProxy } from "./mute-proxy.ts";

/** How a backend is opened in these tests. */
export interface Opening {
  readonly url: string;
  readonly deadline?: string;
}

/** A server that can be broken, with a database of its own for each case. */
export interface Breakable {
  open(opening: Opening): Backend;
  database(): Promise<string>;
  /** On a pool of two connections, both of which are in use until they are given back. */
  openOnExhaustedPool(
    url: string,
  ): Promise<{ readonly backend: Backend; readonly giveBack: () => Promise<void> }>;
  readonly port: number;
  kill(): Promise<void>;
  start(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends all connections to a database but its own. */
  cut(url: string): Promise<void>;
  /** How many connections to a database there are but its own. */
  connections(url: string): Promise<number>;
  /** Drops all tables and routines of holdfast. */
  dropTables(url: string): Promise<void>;
  /** Empties the tables of holdfast that locks live in. */
  emptyTables(url: string): Promise<void>;
  /** Keeps others from creating tables, as another migration does, until it is told to end. */
  holdMigrations(url: string): Promise<() => Promise<void>>;
}

/** Registers the cases; `server` gives the server once it was started. */
export function sqlFaults(name: string, server: () => Breakable): void {
  const open = async (opening: Opening): Promise<LockManager> => {
    const locks = await connect(server().open(opening));
    onTestFinished(() => locks.close());
    return locks;
  };

  describe(`${name} under faults`, () => {
    it("keeps a lock over a crash of the server, and tokens grow over it", async () => {
      const url = await server().database();
      const [a, b] = [await open({ url }), await open({ url })];
      const before: bigint[] = [];
      for (let turn = 0; turn < 20; turn++) {
        await a.request(`job-${turn % 3}`, (lock) => before.push(lock.token));
      }
      const lock = await a.acquire("job-0", { ttl: "30s" });
      const waiting = b.acquire("job-0", { ttl: "30s" });
      await until(async () => (await b.query()).pending.length === 1);
      await server().kill();
      await server().start();
      await until(async () => (await b.query().catch(() => null)) !== null);
      expect(lock.held).toBe(true);
      expect(await b.tryAcquire("job-0")).toBe(null);
      expect((await b.query()).held.map(({ token }) => token)).toEqual([lock.token]);
      expect(await lock.release()).toBe("released");
      const next = await waiting;
      expect(next.token).toBeGreaterThan(lock.token);
      await next.release();
      const after = await a.acquire("job-1");
      expect(before.every((token) => token < after.token)).toBe(true);
    });

    it("hands over in order after all connections were cut", async () => {
      const url = await server().database();
      const [a, b] = [await open({ url }), await open({ url })];
      const holder = await a.acquire("job");
      const order: number[] = [];
      const waiters: Array<Promise<void>> = [];
      for (let turn = 0; turn < 8; turn++) {
        const locks = turn % 2 === 0 ? a : b;
        waiters.push(locks.request("job", () => void order.push(turn)));
        await until(async () => (await b.query()).pending.length === turn + 1);
      }
      await server().cut(url);
      await server().cut(url);
      expect(holder.held).toBe(true);
      // A release whose connection is cut may have to be said again: the lock is then free at the end of its ttl.
      await until(async () => (await a.query().catch(() => null)) !== null);
      expect(await holder.release()).toBe("released");
      await Promise.all(waiters);
      expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    });

    it("ends calls on a frozen server at their deadline, loses the lock in time, and recovers", async () => {
      const url = await server().database();
      await (await open({ url })).request("first", () => {}); // The tables are there.
      const locks = await open({ url, deadline: "1s" });
      const lock = await locks.acquire("job", { ttl: "3s" });
      await server().freeze();
      try {
        const startedAt = performance.now();
        const error: unknown = await locks.acquire("other").catch((reason: unknown) => reason);
        expect(hasCode(error, "LOCK_OUTCOME_UNKNOWN") || hasCode(error, "LOCK_UNAVAILABLE")).toBe(true);
        expect(performance.now() - startedAt).toBeLessThan(10_000);
        await until(() => lock.signal.aborted);
        expect(lock.held).toBe(false);
      } finally {
        await server().thaw();
      }
      const others = await open({ url });
      const next = await others.acquire("job");
      expect(next.token).toBeGreaterThan(lock.token);
    });

    it("counts an answer that came while the process stood still past the deadline", async () => {
      const url = await server().database();
      // The tables are there: what asks for them in vain has its answer in two pieces.
      await (await open({ url })).request("first", () => {});
      const backend = server().open({ url, deadline: "1s" });
      onTestFinished(() => backend.close());
      // It may take some tries until it is connected.
      await until(async () => (await Promise.resolve(backend.list("job")).catch(() => null)) !== null);
      for (let turn = 0; turn < 3; turn++)
        expect(await blockedDuring(1_500, () => backend.list("job"), server().port)).toEqual([]);
    });

    it("gives up connections that fall silent while they are opened, and leaves none behind", async () => {
      const proxy = await MuteProxy.start(server().port);
      onTestFinished(() => proxy.close());
      const url = Object.assign(new URL(await server().database()), { port: String(proxy.port) }).href;
      for (proxy.passes = 1; proxy.passes <= 3; proxy.passes++) {
        const backend = server().open({ url, deadline: "300ms" });
        const calls = [
          Promise.resolve(backend.list("job")),
          isExaminable(backend) ? backend.examine() : null,
          // Tables that are not there are created on a connection of their own.
          (await connect(backend)).request("job", { ifAvailable: true }, () => {}),
        ];
        const ends = await Promise.all(
          calls.map((call) => Promise.resolve(call).catch((error: unknown) => error)),
        );
        for (const end of ends)
          expect(hasCode(end, "LOCK_OUTCOME_UNKNOWN") || hasCode(end, "LOCK_UNAVAILABLE")).toBe(true);
        await backend.close();
      }
      // A migration that is under way has ten seconds.
      await expect.poll(() => proxy.connections, { timeout: 20_000 }).toBe(0);
    }, 60_000);

    it("recovers when the answer to its migration was lost", async () => {
      const url = await server().database();
      const proxy = await MuteProxy.start(server().port);
      onTestFinished(() => proxy.close());
      const locks = await open({
        url: Object.assign(new URL(url), { port: String(proxy.port) }).href,
        deadline: "1s",
      });
      const goOn = await server().holdMigrations(url);
      const first = locks.tryAcquire("job").catch((error: unknown) => error);
      // Two for calls, one for the migration.
      await until(() => proxy.connections === 3);
      await sleep(300);
      proxy.mute();
      await goOn();
      await first;
      await until(async () => (await locks.tryAcquire("job").catch(() => null)) !== null);
    }, 60_000);

    it("creates its tables again when somebody has dropped or emptied them", async () => {
      const url = await server().database();
      const [a, b] = [await open({ url }), await open({ url })];
      const before = await a.request("job", (lock) => lock.token);
      await b.request("job", () => {});
      await server().dropTables(url);
      expect((await b.query()).held).toEqual([]);
      const after = await a.request("job", (lock) => lock.token);
      expect(after).toBeGreaterThan(before);
      await server().emptyTables(url);
      const lock = await a.acquire("job");
      expect(lock.token).toBeGreaterThan(after);
      expect(await b.tryAcquire("job")).toBe(null);
      await lock.release();
    });

    it("queues an entry once when the answer to its append was lost", async () => {
      const url = await server().database();
      const proxy = await TcpProxy.start(server().port);
      onTestFinished(() => proxy.close());
      const through = Object.assign(new URL(url), { port: String(proxy.port) }).href;
      const [others, locks] = [await open({ url }), await open({ url: through, deadline: "1s" })];
      await others.request("first", () => {}); // The tables are there.
      await locks.request("warm", () => {});
      proxy.down.swallow = true;
      const waiting = locks.acquire("job");
      await until(async () => (await others.query()).held.length === 1);
      proxy.heal();
      const lock = await waiting;
      const { held, pending } = await others.query();
      expect(held.map(({ token }) => token)).toEqual([lock.token]);
      expect(pending).toEqual([]);
      expect(await lock.release()).toBe("released");
    });

    it("keeps locks and needs no more than four connections with a hundred waiters", async () => {
      const url = await server().database();
      const locks = await open({ url });
      // Several commits of a renewal fit into this, on a disk that others keep busy, too.
      const holder = await locks.acquire("job", { ttl: "1500ms" });
      const served: number[] = [];
      const waiters = Array.from({ length: 100 }, (_, turn) =>
        locks.request("job", { ttl: "5s" }, () => void served.push(turn)),
      );
      await until(async () => (await locks.query()).pending.length === 100);
      await sleep(3_000);
      expect(holder.held).toBe(true);
      expect(await server().connections(url)).toBeLessThanOrEqual(4);
      await holder.release();
      await Promise.all(waiters);
      expect(served).toEqual(Array.from({ length: 100 }, (_, turn) => turn));
      await locks.close();
      await until(async () => (await server().connections(url)) === 0);
    });

    it("an exhausted pool of the user's neither delays nor loses a lock", async () => {
      const { backend, giveBack } = await server().openOnExhaustedPool(await server().database());
      const locks = await connect(backend);
      onTestFinished(() => locks.close());
      const lock = await locks.acquire("job", { ttl: "1s" });
      let served = 0;
      const waiters = Array.from({ length: 50 }, () => locks.request("job", () => void (served += 1)));
      await until(async () => (await locks.query()).pending.length === 50);
      await sleep(1_500);
      expect(lock.held).toBe(true);
      await lock.release();
      await Promise.all(waiters);
      expect(served).toBe(50);
      await giveBack();
    });

    it("says that it is unavailable while the server is down, and works when it is back", async () => {
      const url = await server().database();
      const locks = await open({ url });
      // A crash may undo the release of a moment ago.
      await locks.request("job", { ttl: "1s" }, () => {});
      await server().kill();
      try {
        // Processes of a killed server may serve for a moment yet.
        await until(() => locks.query().then(isFalse, isTrue));
        const error: unknown = await locks.acquire("job").catch((reason: unknown) => reason);
        expect(hasCode(error, "LOCK_UNAVAILABLE")).toBe(true);
      } finally {
        await server().start();
      }
      await locks.request("job", () => {});
    });
  });
}

/** Stops a process, and waits until all of it stands still. */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until(async () => {
    const tasks = await readdir(`/proc/${pid}/task`);
    const states = await Promise.all(
      tasks.map((task) => readFile(`/proc/${pid}/task/${task}/status`, "utf8")),
    );
    return states.every((state) => /^State:\s+T/m.test(state));
  });
}

/** Looks again and again until something is so; the runner's limit ends it otherwise. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(5);
}

const isTrue = (): boolean => true;
const isFalse = (): boolean => false;
