/** Where each store is, as messages about its locks say it: from its URL, without a user or a password, and without asking it. */
import { expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.ts";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import { redlockBackend } from "../../src/backends/redlock/index.ts";
import { zookeeperBackend, zookeeperUrl } from "../../src/backends/zookeeper/index.ts";
import type { Backend } from "../../src/core/backend.ts";
import { LockManager } from "../../src/core/manager.ts";

const postgres = (url: string): Backend => postgresBackend({ url });
const mysql = (url: string): Backend => mysqlBackend({ url });
const etcd = (url: string): Backend => etcdBackend({ url });
const zookeeper = (url: string): Backend => zookeeperBackend(zookeeperUrl(url));
const redlock = (url: string): Backend => redlockBackend({ url });

it.each([
  [postgres, "postgres://me:hunter22@db:5433/app?sslmode=disable", "db:5433/app"],
  [postgres, "postgres:///app", undefined],
  [postgres, "postgres://me:22/hunter@db/app", undefined],
  [mysql, "mysql://me:hunter22@db:3307/app", "db:3307/app"],
  [mysql, "mysql://me:22?hunter@db/app", undefined],
  [etcd, "etcd://me:hunter22@a:2379,b:2380", "a:2379,b:2380"],
  [zookeeper, "zookeeper://me:hunter22@a:2181,b:2182/locks", "a:2181,b:2182"],
  [redlock, "redlock://me:hunter22@a:1,b:2,c:3", "a:1,b:2,c:3"],
])("%o %s", async (open, url, place) => {
  const backend = open(url);
  expect(backend.place).toBe(place);
  await backend.close();
});

it("is part of the messages about a lock, and not of their field for the backend", async () => {
  const inner = memoryBackend();
  const backend = new Proxy(inner, {
    get(target, property) {
      if (property === "place") return "host:1";
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  await using locks = new LockManager(backend);
  await locks.acquire("a");
  const signal = AbortSignal.abort();
  const busy: unknown = await locks.acquire("a", { wait: 0 }).catch((error: unknown) => error);
  const aborted: unknown = await locks.acquire("a", { signal }).catch((error: unknown) => error);
  const start = 'lock "a" on memory at host:1: ';
  expect(busy).toMatchObject({ backend: "memory", message: `${start}it is busy, and the wait is 0` });
  expect(aborted).toMatchObject({ backend: "memory", message: expect.stringContaining(start) });
});
