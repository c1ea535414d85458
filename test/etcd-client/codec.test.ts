/** The codecs of the messages: what is written is read again as it was, and broken bytes are refused. */
import * as fc from "fast-check";
import type { Arbitrary } from "fast-check";
import { describe, expect, it } from "vitest";
import type { Codec } from "../../src/backends/etcd/client/codec.ts";
import * as cluster from "../../src/backends/etcd/client/messages/cluster.ts";
import * as kv from "../../src/backends/etcd/client/messages/kv.ts";
import * as lease from "../../src/backends/etcd/client/messages/lease.ts";
import * as txn from "../../src/backends/etcd/client/messages/txn.ts";
import * as watch from "../../src/backends/etcd/client/messages/watch.ts";

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 0n, max: 300n }),
);
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const choice = fc.nat(5);
const flag = fc.boolean();
const bytes: Arbitrary<Uint8Array> = fc.uint8Array({ maxLength: 300 }).map((value) => Buffer.from(value));
const text = fc.string({ unit: "grapheme" });
const maybe = <T>(value: Arbitrary<T>): Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const some = <T>(value: Arbitrary<T>): Arbitrary<T[]> => fc.array(value, { maxLength: 4 });

const header: Arbitrary<kv.ResponseHeader> = fc.record({
  clusterId: uint64,
  memberId: uint64,
  revision: int64,
  raftTerm: uint64,
});
const keyValue: Arbitrary<kv.KeyValue> = fc.record({
  key: bytes,
  createRevision: int64,
  modRevision: int64,
  version: int64,
  value: bytes,
  lease: int64,
});
const range: Arbitrary<kv.RangeRequest> = fc.record({
  key: bytes,
  rangeEnd: bytes,
  limit: int64,
  revision: int64,
  sortOrder: choice,
  sortTarget: choice,
  serializable: flag,
  keysOnly: flag,
  countOnly: flag,
  minModRevision: int64,
  maxModRevision: int64,
  minCreateRevision: int64,
  maxCreateRevision: int64,
});
const put: Arbitrary<kv.PutRequest> = fc.record({
  key: bytes,
  value: bytes,
  lease: int64,
  prevKv: flag,
  ignoreValue: flag,
  ignoreLease: flag,
});
const deleteRange: Arbitrary<kv.DeleteRangeRequest> = fc.record({
  key: bytes,
  rangeEnd: bytes,
  prevKv: flag,
});
const rangeAnswer = fc.record({ header: maybe(header), kvs: some(keyValue), more: flag, count: int64 });
const putAnswer = fc.record({ header: maybe(header), prevKv: maybe(keyValue) });
const deleteAnswer = fc.record({ header: maybe(header), deleted: int64, prevKvs: some(keyValue) });
const compare: Arbitrary<txn.Compare> = fc.record({
  result: choice,
  target: choice,
  key: bytes,
  version: maybe(int64),
  createRevision: maybe(int64),
  modRevision: maybe(int64),
  value: maybe(bytes),
  lease: maybe(int64),
  rangeEnd: bytes,
});

const { request, answer } = fc.letrec<{ request: txn.TxnRequest; answer: txn.TxnResponse }>((tie) => {
  const step = fc.record({
    range: maybe(range),
    put: maybe(put),
    deleteRange: maybe(deleteRange),
    txn: fc.option(tie("request"), { nil: undefined, maxDepth: 2 }),
  });
  const done = fc.record({
    range: maybe(rangeAnswer),
    put: maybe(putAnswer),
    deleteRange: maybe(deleteAnswer),
    txn: fc.option(tie("answer"), { nil: undefined, maxDepth: 2 }),
  });
  return {
    request: fc.record({ compare: some(compare), success: some(step), failure: some(step) }),
    answer: fc.record({ header: maybe(header), succeeded: flag, responses: some(done) }),
  };
});

const event = fc.record({ type: choice, kv: maybe(keyValue), prevKv: maybe(keyValue) });
const create = fc.record({
  key: bytes,
  rangeEnd: bytes,
  startRevision: int64,
  progressNotify: flag,
  filters: some(choice),
  prevKv: flag,
});

function roundTrip<T>(name: string, codec: Codec<T>, values: Arbitrary<T>): void {
  it(`${name} is read as it was written`, () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(codec.decode(codec.encode(value))).toEqual(value);
      }),
      { numRuns: 150 },
    );
  });
}

describe("keys and transactions", () => {
  roundTrip("RangeRequest", kv.rangeRequest, range);
  roundTrip("RangeResponse", kv.rangeResponse, rangeAnswer);
  roundTrip("PutRequest", kv.putRequest, put);
  roundTrip("PutResponse", kv.putResponse, putAnswer);
  roundTrip("DeleteRangeRequest", kv.deleteRangeRequest, deleteRange);
  roundTrip("DeleteRangeResponse", kv.deleteRangeResponse, deleteAnswer);
  roundTrip("TxnRequest", txn.txnRequest, request);
  roundTrip("TxnResponse", txn.txnResponse, answer);
});

describe("leases", () => {
  roundTrip("LeaseGrantRequest", lease.leaseGrantRequest, fc.record({ ttl: int64, id: int64 }));
  roundTrip(
    "LeaseGrantResponse",
    lease.leaseGrantResponse,
    fc.record({ header: maybe(header), id: int64, ttl: int64, error: text }),
  );
  roundTrip("LeaseRevokeRequest", lease.leaseRevokeRequest, fc.record({ id: int64 }));
  roundTrip("LeaseRevokeResponse", lease.leaseRevokeResponse, fc.record({ header: maybe(header) }));
  roundTrip("LeaseKeepAliveRequest", lease.leaseKeepAliveRequest, fc.record({ id: int64 }));
  roundTrip(
    "LeaseKeepAliveResponse",
    lease.leaseKeepAliveResponse,
    fc.record({ header: maybe(header), id: int64, ttl: int64 }),
  );
  roundTrip("LeaseTimeToLiveRequest", lease.leaseTimeToLiveRequest, fc.record({ id: int64, keys: flag }));
  roundTrip(
    "LeaseTimeToLiveResponse",
    lease.leaseTimeToLiveResponse,
    fc.record({ header: maybe(header), id: int64, ttl: int64, grantedTtl: int64, keys: some(bytes) }),
  );
});

describe("watches", () => {
  roundTrip(
    "WatchRequest",
    watch.watchRequest,
    fc.record({ create: maybe(create), cancel: maybe(fc.record({ watchId: int64 })) }),
  );
  roundTrip(
    "WatchResponse",
    watch.watchResponse,
    fc.record({
      header: maybe(header),
      watchId: int64,
      created: flag,
      canceled: flag,
      compactRevision: int64,
      cancelReason: text,
      events: some(event),
    }),
  );
});

describe("the cluster", () => {
  roundTrip("AuthenticateRequest", cluster.authenticateRequest, fc.record({ name: text, password: text }));
  roundTrip(
    "AuthenticateResponse",
    cluster.authenticateResponse,
    fc.record({ header: maybe(header), token: text }),
  );
  roundTrip(
    "StatusResponse",
    cluster.statusResponse,
    fc.record({
      header: maybe(header),
      version: text,
      dbSize: int64,
      leader: uint64,
      raftIndex: uint64,
      raftTerm: uint64,
      raftAppliedIndex: uint64,
      errors: some(text),
      dbSizeInUse: int64,
      isLearner: flag,
    }),
  );
  const alarm = fc.record({ memberId: uint64, alarm: choice });
  roundTrip(
    "AlarmRequest",
    cluster.alarmRequest,
    fc.record({ action: choice, memberId: uint64, alarm: choice }),
  );
  roundTrip(
    "AlarmResponse",
    cluster.alarmResponse,
    fc.record({ header: maybe(header), alarms: some(alarm) }),
  );
  const member = fc.record({
    id: uint64,
    name: text,
    peerUrls: some(text),
    clientUrls: some(text),
    isLearner: flag,
  });
  roundTrip(
    "MemberListResponse",
    cluster.memberListResponse,
    fc.record({ header: maybe(header), members: some(member) }),
  );
});

describe("bytes", () => {
  // By hand from the wire format: key "k", value "v", lease 300, prev_kv.
  const known = Buffer.from("0a016b12017618ac022001", "hex");

  it("are those that the format says", () => {
    const value = { key: Buffer.from("k"), value: Buffer.from("v"), lease: 300n, prevKv: true };
    expect(kv.putRequest.encode(value).toString("hex")).toBe(known.toString("hex"));
    expect(kv.putRequest.decode(known)).toMatchObject({ lease: 300n, prevKv: true, ignoreValue: false });
  });

  it("may be given as text", () => {
    const given = { key: "é/\u{1F600}", value: "" };
    const asBytes = { key: Buffer.from(given.key), value: Buffer.alloc(0) };
    expect(kv.putRequest.encode(given)).toEqual(kv.putRequest.encode(asBytes));
  });

  it("of fields that nobody knows are passed over", () => {
    // Fields 100 to 103: a number, eight bytes, a block, four bytes.
    const unknown = Buffer.from("a006ac02a9060102030405060708b206020102bd0601020304", "hex");
    expect(kv.putRequest.decode(Buffer.concat([unknown, known]))).toEqual(kv.putRequest.decode(known));
  });

  it("of numbers that come packed are read", () => {
    expect(watch.watchCreateRequest.decode(Buffer.from("2a0401000102", "hex")).filters).toEqual([1, 0, 1, 2]);
  });

  it("that end too early are refused", () => {
    for (const cut of [1, 2, 4, 7, 8, 10]) {
      expect(() => kv.putRequest.decode(known.subarray(0, cut))).toThrow(RangeError);
    }
  });

  it("of any kind are read or refused, never more", () => {
    fc.assert(
      fc.property(bytes, (value) => {
        try {
          txn.txnResponse.decode(Buffer.from(value));
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
});
