/** The messages of etcd's watch stream. */
import { bytes, choice, type Codec, codecOf, flag, int64, message, text } from "../codec.ts";
import { type KeyValue, keyValue, type ResponseHeader, responseHeader } from "./kv.ts";

export const eventType = { put: 0, delete: 1 } as const;
export const watchFilter = { noPut: 0, noDelete: 1 } as const;

export interface WatchEvent {
  readonly type: number;
  readonly kv: KeyValue | undefined;
  readonly prevKv: KeyValue | undefined;
}
const watchEvent: Codec<WatchEvent> = codecOf<WatchEvent>({
  type: { number: 1, kind: choice },
  kv: { number: 2, kind: message(() => keyValue), chosen: true },
  prevKv: { number: 3, kind: message(() => keyValue), chosen: true },
});

export interface WatchCreateRequest {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
  /** The first revision to tell of; 0n: what comes after the watch stands. */
  readonly startRevision: bigint;
  readonly progressNotify: boolean;
  readonly filters: readonly number[];
  readonly prevKv: boolean;
}
export const watchCreateRequest: Codec<WatchCreateRequest> = codecOf<WatchCreateRequest>({
  key: { number: 1, kind: bytes },
  rangeEnd: { number: 2, kind: bytes },
  startRevision: { number: 3, kind: int64 },
  progressNotify: { number: 4, kind: flag },
  filters: { number: 5, kind: choice, many: true },
  prevKv: { number: 6, kind: flag },
});

export interface WatchCancelRequest {
  readonly watchId: bigint;
}
const watchCancelRequest: Codec<WatchCancelRequest> = codecOf<WatchCancelRequest>({
  watchId: { number: 1, kind: int64 },
});

export interface WatchRequest {
  readonly create: WatchCreateRequest | undefined;
  readonly cancel: WatchCancelRequest | undefined;
}
export const watchRequest: Codec<WatchRequest> = codecOf<WatchRequest>({
  create: { number: 1, kind: message(() => watchCreateRequest), chosen: true },
  cancel: { number: 2, kind: message(() => watchCancelRequest), chosen: true },
});

export interface WatchResponse {
  readonly header: ResponseHeader | undefined;
  readonly watchId: bigint;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Above 0n: what was asked for had been compacted away, up to this revision. */
  readonly compactRevision: bigint;
  readonly cancelReason: string;
  readonly events: readonly WatchEvent[];
}
export const watchResponse: Codec<WatchResponse> = codecOf<WatchResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  watchId: { number: 2, kind: int64 },
  created: { number: 3, kind: flag },
  canceled: { number: 4, kind: flag },
  compactRevision: { number: 5, kind: int64 },
  cancelReason: { number: 6, kind: text },
  events: { number: 11, kind: message(() => watchEvent), many: true },
});
