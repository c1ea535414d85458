/** The thin client against a real server: every call there and back. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { EtcdClient } from "../../src/backends/etcd/client/client.ts";
import { EtcdError, status } from "../../src/backends/etcd/client/errors.ts";
import { sortOrder, sortTarget } from "../../src/backends/etcd/client/messages/kv.ts";
import { compareTarget } from "../../src/backends/etcd/client/messages/txn.ts";
import { eventType, type WatchEvent } from "../../src/backends/etcd/client/messages/watch.ts";
import * as methods from "../../src/backends/etcd/client/methods.ts";
import type { WatchEnd } from "../../src/backends/etcd/client/watch-stream.ts";
import { startOne } from "../helpers/etcd.ts";

let node: EtcdNode;
let client: EtcdClient;

beforeAll(async () => {
  node = await startOne();
  client = new EtcdClient({ endpoints: [node.endpoint] });
});

afterAll(async () => {
  await client.close();
  await node.remove();
});

const bytes = (text: string): Buffer => Buffer.from(text);
const text = (value: Uint8Array | undefined): string => Buffer.from(value ?? []).toString();

describe("keys", () => {
  it("are put, found and deleted", async () => {
    const put = await client.call(methods.put, { key: bytes("a/1"), value: bytes("é🔒") });
    await client.call(methods.put, { key: bytes("a/2"), value: bytes("two") });
    const found = await client.call(methods.range, {
      key: bytes("a/"),
      rangeEnd: bytes("a0"),
      sortOrder: sortOrder.descend,
      sortTarget: sortTarget.create,
    });
    expect(found.count).toBe(2n);
    expect(found.kvs.map(({ key, value }) => [text(key), text(value)])).toEqual([
      ["a/2", "two"],
      ["a/1", "é🔒"],
    ]);
    expect(found.kvs[1]?.createRevision).toBe(put.header?.revision);
    expect(found.kvs[1]?.version).toBe(1n);
    const gone = await client.call(methods.deleteRange, {
      key: bytes("a/"),
      rangeEnd: bytes("a0"),
      prevKv: true,
    });
    expect(gone.deleted).toBe(2n);
    expect(gone.prevKvs.map(({ key }) => text(key))).toEqual(["a/1", "a/2"]);
  });

  it("answers of several megabytes arrive whole", async () => {
    const value = Buffer.alloc(1_000_000, "x");
    for (let index = 0; index < 6; index++) {
      await client.call(methods.put, { key: bytes(`big/${index}`), value });
    }
    const { kvs } = await client.call(methods.range, { key: bytes("big/"), rangeEnd: bytes("big0") });
    expect(kvs.map((kv) => value.equals(kv.value))).toEqual(Array(6).fill(true));
    await client.call(methods.deleteRange, { key: bytes("big/"), rangeEnd: bytes("big0") });
  });

  it("hundreds of calls at once are each answered with their own", async () => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, async (_, index) => {
        await client.call(methods.put, { key: bytes(`m/${index}`), value: bytes(`${index}`) });
        const { kvs } = await client.call(methods.range, { key: bytes(`m/${index}`) });
        return text(kvs[0]?.value);
      }),
    );
    expect(answers).toEqual(Array.from({ length: 300 }, (_, index) => `${index}`));
  });
});

describe("transactions", () => {
  const absent = (key: string): object => ({
    target: compareTarget.create,
    key: bytes(key),
    createRevision: 0n,
  });

  it("do one thing or the other", async () => {
    const request = {
      compare: [absent("t")],
      success: [{ put: { key: bytes("t"), value: bytes("1") } }, { range: { key: bytes("t") } }],
      failure: [{ range: { key: bytes("t") } }],
    };
    const first = await client.call(methods.transact, request);
    const second = await client.call(methods.transact, request);
    expect([first.succeeded, second.succeeded]).toEqual([true, false]);
    const own = first.responses[1]?.range?.kvs[0];
    expect(own?.createRevision).toBe(first.header?.revision);
    expect(second.responses[0]?.range?.kvs[0]).toEqual(own);
  });

  it("compare ranges, and contain one another", async () => {
    const guarded = {
      compare: [{ ...absent("nest/"), rangeEnd: bytes("nest0") }],
      success: [{ put: { key: bytes("nest/1") } }],
      failure: [{ deleteRange: { key: bytes("nest/1") } }],
    };
    const first = await client.call(methods.transact, { success: [{ txn: guarded }] });
    const second = await client.call(methods.transact, { success: [{ txn: guarded }] });
    expect(first.responses[0]?.txn?.succeeded).toBe(true);
    expect(second.responses[0]?.txn?.succeeded).toBe(false);
    expect(second.responses[0]?.txn?.responses[0]?.deleteRange?.deleted).toBe(1n);
  });
});

describe("leases", () => {
  it("are granted, kept alive, looked at and revoked", async () => {
    const { id, ttl, header } = await client.call(methods.leaseGrant, { ttl: 30n });
    expect(ttl).toBe(30n);
    expect(id).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER));
    await client.call(methods.put, { key: bytes("leased"), lease: id });
    const kept = await client.call(methods.leaseKeepAlive, { id });
    expect([kept.id, kept.ttl]).toEqual([id, 30n]);
    expect(kept.header?.raftTerm).toBe(header?.raftTerm);
    expect(kept.header?.raftTerm).toBeGreaterThan(0n);
    const left = await client.call(methods.leaseTimeToLive, { id, keys: true });
    expect(left.ttl).toBeGreaterThan(25n);
    expect(left.grantedTtl).toBe(30n);
    expect(left.keys.map(text)).toEqual(["leased"]);
    await client.call(methods.leaseRevoke, { id });
    const after = await client.call(methods.range, { key: bytes("leased") });
    expect(after.kvs).toEqual([]);
    const late = await client.call(methods.leaseKeepAlive, { id });
    expect(late.ttl).toBe(0n);
  });

  it("below the server's minimum are granted with the minimum", async () => {
    const { id, ttl } = await client.call(methods.leaseGrant, { ttl: -5n });
    expect(ttl).toBe(1n);
    await client.call(methods.leaseRevoke, { id });
  });

  it("that do not exist are refused before anything happens, in a transaction too", async () => {
    const request = { success: [{ put: { key: bytes("nobody"), lease: 12345n } }] };
    const error = await client.call(methods.transact, request).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EtcdError);
    expect(error).toMatchObject({ status: status.notFound, notDone: true });
    expect((await client.call(methods.range, { key: bytes("nobody") })).kvs).toEqual([]);
  });
});

/** Collects what a watch tells. */
class Told {
  readonly events: WatchEvent[] = [];
  createdAt: bigint | null = null;
  end: WatchEnd | null = null;
  readonly listener = {
    created: (revision: bigint): void => {
      this.createdAt = revision;
    },
    events: (events: readonly WatchEvent[]): void => {
      this.events.push(...events);
    },
    ended: (end: WatchEnd): void => {
      this.end = end;
    },
  };

  get short(): string[] {
    return this.events.map(({ type, kv }) => `${type === eventType.put ? "+" : "-"}${text(kv?.key)}`);
  }
}

describe("watches", () => {
  it("tell of their own range, from where they were asked to, until they are cancelled", async () => {
    const [past, present] = [new Told(), new Told()];
    const first = await client.call(methods.put, { key: bytes("w/1"), value: bytes("x") });
    const range = { key: bytes("w/"), rangeEnd: bytes("w0") };
    const watch = await client.watch(
      { ...range, startRevision: first.header?.revision ?? 0n, prevKv: true },
      past.listener,
    );
    await client.watch(range, present.listener);
    await expect.poll(() => present.createdAt).toBe(first.header?.revision);
    await client.call(methods.deleteRange, { key: bytes("w/1") });
    await client.call(methods.put, { key: bytes("elsewhere") });
    await expect.poll(() => past.short).toEqual(["+w/1", "-w/1"]);
    await expect.poll(() => present.short).toEqual(["-w/1"]);
    expect(text(past.events[1]?.prevKv?.value)).toBe("x");
    watch.cancel();
    await client.call(methods.put, { key: bytes("w/2") });
    await expect.poll(() => present.short).toEqual(["-w/1", "+w/2"]);
    expect(past.short).toEqual(["+w/1", "-w/1"]);
    expect(past.end).toBeNull();
  });

  it("that are asked for while the last one is cancelled stand all the same", async () => {
    const alone = new EtcdClient({ endpoints: [node.endpoint] });
    const [first, second] = [new Told(), new Told()];
    const watch = await alone.watch({ key: bytes("l") }, first.listener);
    await expect.poll(() => first.createdAt).not.toBeNull();
    const asked = alone.watch({ key: bytes("l") }, second.listener);
    // The stream ends with its last watch.
    watch.cancel();
    await asked;
    await expect.poll(() => second.createdAt).not.toBeNull();
    await client.call(methods.put, { key: bytes("l") });
    await expect.poll(() => second.short).toEqual(["+l"]);
    await alone.close();
  });

  it("from a revision that was compacted away end, and say so", async () => {
    const { header } = await client.call(methods.put, { key: bytes("c") });
    await client.call(methods.put, { key: bytes("c") });
    const revision = header?.revision ?? 0n;
    await fetch(`${node.endpoint}/v3/kv/compaction`, {
      method: "POST",
      body: JSON.stringify({ revision: `${revision + 1n}` }),
    });
    const told = new Told();
    await client.watch({ key: bytes("c"), startRevision: revision - 1n }, told.listener);
    await expect.poll(() => told.end?.compactRevision).toBe(revision + 1n);
  });
});

describe("the cluster", () => {
  it("says how it is", async () => {
    const said = await client.callMember(node.endpoint, methods.memberStatus, {});
    expect(said.version).toMatch(/^3\.\d+\.\d+/);
    expect(said.leader).toBe(said.header?.memberId);
    expect(said.dbSize).toBeGreaterThan(0n);
    const { members } = await client.call(methods.memberList, {});
    expect(members.map(({ id, clientUrls }) => [id, clientUrls])).toEqual([[said.leader, [node.endpoint]]]);
    expect((await client.call(methods.alarm, {})).alarms).toEqual([]);
  });

  it("refuses what it does not understand", async () => {
    const error = await client.call(methods.range, {}).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: status.invalidArgument, notDone: true });
    expect(error).toHaveProperty("message", expect.stringContaining("key is not provided"));
  });
});
