/** The messages of etcd's transactions: comparisons, and what is done if all of them hold or if one does not. */
import { bytes, choice, type Codec, codecOf, flag, int64, message } from "../codec.ts";
import {
  type DeleteRangeRequest,
  deleteRangeRequest,
  type DeleteRangeResponse,
  deleteRangeResponse,
  type PutRequest,
  putRequest,
  type PutResponse,
  putResponse,
  type RangeRequest,
  rangeRequest,
  type RangeResponse,
  rangeResponse,
  type ResponseHeader,
  responseHeader,
} from "./kv.ts";

export const compareResult = { equal: 0, greater: 1, less: 2, notEqual: 3 } as const;
export const compareTarget = { version: 0, create: 1, mod: 2, value: 3, lease: 4 } as const;

/** A comparison; with a range it must hold for all keys in it, and an empty one counts as a key of revision 0. */
export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: Uint8Array;
  readonly version: bigint | undefined;
  readonly createRevision: bigint | undefined;
  readonly modRevision: bigint | undefined;
  readonly value: Uint8Array | undefined;
  readonly lease: bigint | undefined;
  readonly rangeEnd: Uint8Array;
}
const compare: Codec<Compare> = codecOf<Compare>({
  result: { number: 1, kind: choice },
  target: { number: 2, kind: choice },
  key: { number: 3, kind: bytes },
  version: { number: 4, kind: int64, chosen: true },
  createRevision: { number: 5, kind: int64, chosen: true },
  modRevision: { number: 6, kind: int64, chosen: true },
  value: { number: 7, kind: bytes, chosen: true },
  lease: { number: 8, kind: int64, chosen: true },
  rangeEnd: { number: 64, kind: bytes },
});

/** One step of a transaction: exactly one of these. */
export interface RequestOp {
  readonly range: RangeRequest | undefined;
  readonly put: PutRequest | undefined;
  readonly deleteRange: DeleteRangeRequest | undefined;
  readonly txn: TxnRequest | undefined;
}
const requestOp: Codec<RequestOp> = codecOf<RequestOp>({
  range: { number: 1, kind: message(() => rangeRequest), chosen: true },
  put: { number: 2, kind: message(() => putRequest), chosen: true },
  deleteRange: { number: 3, kind: message(() => deleteRangeRequest), chosen: true },
  txn: { number: 4, kind: message(() => txnRequest), chosen: true },
});

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}
export const txnRequest: Codec<TxnRequest> = codecOf<TxnRequest>({
  compare: { number: 1, kind: message(() => compare), many: true },
  success: { number: 2, kind: message(() => requestOp), many: true },
  failure: { number: 3, kind: message(() => requestOp), many: true },
});

/** The answer to one step. */
export interface ResponseOp {
  readonly range: RangeResponse | undefined;
  readonly put: PutResponse | undefined;
  readonly deleteRange: DeleteRangeResponse | undefined;
  readonly txn: TxnResponse | undefined;
}
const responseOp: Codec<ResponseOp> = codecOf<ResponseOp>({
  range: { number: 1, kind: message(() => rangeResponse), chosen: true },
  put: { number: 2, kind: message(() => putResponse), chosen: true },
  deleteRange: { number: 3, kind: message(() => deleteRangeResponse), chosen: true },
  txn: { number: 4, kind: message(() => txnResponse), chosen: true },
});

export interface TxnResponse {
  readonly header: ResponseHeader | undefined;
  /** Whether all comparisons held. */
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}
export const txnResponse: Codec<TxnResponse> = codecOf<TxnResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  succeeded: { number: 2, kind: flag },
  responses: { number: 3, kind: message(() => responseOp), many: true },
});
