/** The messages of etcd's lease service. Lifetimes are whole seconds. */
import { bytes, type Codec, codecOf, flag, int64, message, text } from "../codec.ts";
import { type ResponseHeader, responseHeader } from "./kv.ts";

export interface LeaseGrantRequest {
  readonly ttl: bigint;
  /** 0n: the server chooses. */
  readonly id: bigint;
}
export const leaseGrantRequest: Codec<LeaseGrantRequest> = codecOf<LeaseGrantRequest>({
  ttl: { number: 1, kind: int64 },
  id: { number: 2, kind: int64 },
});

export interface LeaseGrantResponse {
  readonly header: ResponseHeader | undefined;
  readonly id: bigint;
  /** What was granted: more than asked where the server has a minimum. */
  readonly ttl: bigint;
  readonly error: string;
}
export const leaseGrantResponse: Codec<LeaseGrantResponse> = codecOf<LeaseGrantResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  id: { number: 2, kind: int64 },
  ttl: { number: 3, kind: int64 },
  error: { number: 4, kind: text },
});

export interface LeaseRevokeRequest {
  readonly id: bigint;
}
export const leaseRevokeRequest: Codec<LeaseRevokeRequest> = codecOf<LeaseRevokeRequest>({
  id: { number: 1, kind: int64 },
});

export interface LeaseRevokeResponse {
  readonly header: ResponseHeader | undefined;
}
export const leaseRevokeResponse: Codec<LeaseRevokeResponse> = codecOf<LeaseRevokeResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
});

export interface LeaseKeepAliveRequest {
  readonly id: bigint;
}
export const leaseKeepAliveRequest: Codec<LeaseKeepAliveRequest> = codecOf<LeaseKeepAliveRequest>({
  id: { number: 1, kind: int64 },
});

export interface LeaseKeepAliveResponse {
  readonly header: ResponseHeader | undefined;
  readonly id: bigint;
  /** 0n: there is no such lease any more. */
  readonly ttl: bigint;
}
export const leaseKeepAliveResponse: Codec<LeaseKeepAliveResponse> = codecOf<LeaseKeepAliveResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  id: { number: 2, kind: int64 },
  ttl: { number: 3, kind: int64 },
});

export interface LeaseTimeToLiveRequest {
  readonly id: bigint;
  readonly keys: boolean;
}
export const leaseTimeToLiveRequest: Codec<LeaseTimeToLiveRequest> = codecOf<LeaseTimeToLiveRequest>({
  id: { number: 1, kind: int64 },
  keys: { number: 2, kind: flag },
});

export interface LeaseTimeToLiveResponse {
  readonly header: ResponseHeader | undefined;
  readonly id: bigint;
  /** What is left; below 0n: there is no such lease. */
  readonly ttl: bigint;
  readonly grantedTtl: bigint;
  readonly keys: readonly Uint8Array[];
}
export const leaseTimeToLiveResponse: Codec<LeaseTimeToLiveResponse> = codecOf<LeaseTimeToLiveResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  id: { number: 2, kind: int64 },
  ttl: { number: 3, kind: int64 },
  grantedTtl: { number: 4, kind: int64 },
  keys: { number: 5, kind: bytes, many: true },
});
