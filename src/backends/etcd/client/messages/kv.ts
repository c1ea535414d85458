/** The messages of etcd's key-value service, field by field as its public definitions number them. */
import { bytes, choice, type Codec, codecOf, flag, int64, message, uint64 } from "../codec.ts";

/** What every answer starts with. */
export interface ResponseHeader {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  /** The store's revision when it answered. */
  readonly revision: bigint;
  readonly raftTerm: bigint;
}
export const responseHeader: Codec<ResponseHeader> = codecOf<ResponseHeader>({
  clusterId: { number: 1, kind: uint64 },
  memberId: { number: 2, kind: uint64 },
  revision: { number: 3, kind: int64 },
  raftTerm: { number: 4, kind: uint64 },
});

export interface KeyValue {
  readonly key: Uint8Array;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly version: bigint;
  readonly value: Uint8Array;
  /** 0n where the key belongs to no lease. */
  readonly lease: bigint;
}
export const keyValue: Codec<KeyValue> = codecOf<KeyValue>({
  key: { number: 1, kind: bytes },
  createRevision: { number: 2, kind: int64 },
  modRevision: { number: 3, kind: int64 },
  version: { number: 4, kind: int64 },
  value: { number: 5, kind: bytes },
  lease: { number: 6, kind: int64 },
});

export const sortOrder = { none: 0, ascend: 1, descend: 2 } as const;
export const sortTarget = { key: 0, version: 1, create: 2, mod: 3, value: 4 } as const;

export interface RangeRequest {
  readonly key: Uint8Array;
  /** The first key behind the range; empty: only `key`. */
  readonly rangeEnd: Uint8Array;
  readonly limit: bigint;
  readonly revision: bigint;
  readonly sortOrder: number;
  readonly sortTarget: number;
  /** May be answered by any member from what it knows. */
  readonly serializable: boolean;
  readonly keysOnly: boolean;
  readonly countOnly: boolean;
  readonly minModRevision: bigint;
  readonly maxModRevision: bigint;
  readonly minCreateRevision: bigint;
  readonly maxCreateRevision: bigint;
}
export const rangeRequest: Codec<RangeRequest> = codecOf<RangeRequest>({
  key: { number: 1, kind: bytes },
  rangeEnd: { number: 2, kind: bytes },
  limit: { number: 3, kind: int64 },
  revision: { number: 4, kind: int64 },
  sortOrder: { number: 5, kind: choice },
  sortTarget: { number: 6, kind: choice },
  serializable: { number: 7, kind: flag },
  keysOnly: { number: 8, kind: flag },
  countOnly: { number: 9, kind: flag },
  minModRevision: { number: 10, kind: int64 },
  maxModRevision: { number: 11, kind: int64 },
  minCreateRevision: { number: 12, kind: int64 },
  maxCreateRevision: { number: 13, kind: int64 },
});

export interface RangeResponse {
  readonly header: ResponseHeader | undefined;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: bigint;
}
export const rangeResponse: Codec<RangeResponse> = codecOf<RangeResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  kvs: { number: 2, kind: message(() => keyValue), many: true },
  more: { number: 3, kind: flag },
  count: { number: 4, kind: int64 },
});

export interface PutRequest {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly lease: bigint;
  readonly prevKv: boolean;
  /** Keep the value that the key has. */
  readonly ignoreValue: boolean;
  /** Keep the lease that the key has. */
  readonly ignoreLease: boolean;
}
export const putRequest: Codec<PutRequest> = codecOf<PutRequest>({
  key: { number: 1, kind: bytes },
  value: { number: 2, kind: bytes },
  lease: { number: 3, kind: int64 },
  prevKv: { number: 4, kind: flag },
  ignoreValue: { number: 5, kind: flag },
  ignoreLease: { number: 6, kind: flag },
});

export interface PutResponse {
  readonly header: ResponseHeader | undefined;
  readonly prevKv: KeyValue | undefined;
}
export const putResponse: Codec<PutResponse> = codecOf<PutResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  prevKv: { number: 2, kind: message(() => keyValue), chosen: true },
});

export interface DeleteRangeRequest {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
  readonly prevKv: boolean;
}
export const deleteRangeRequest: Codec<DeleteRangeRequest> = codecOf<DeleteRangeRequest>({
  key: { number: 1, kind: bytes },
  rangeEnd: { number: 2, kind: bytes },
  prevKv: { number: 3, kind: flag },
});

export interface DeleteRangeResponse {
  readonly header: ResponseHeader | undefined;
  readonly deleted: bigint;
  readonly prevKvs: readonly KeyValue[];
}
export const deleteRangeResponse: Codec<DeleteRangeResponse> = codecOf<DeleteRangeResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  deleted: { number: 2, kind: int64 },
  prevKvs: { number: 3, kind: message(() => keyValue), many: true },
});
