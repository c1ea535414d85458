/** The messages about the cluster itself: who one is, who belongs to it, how it is. */
import { choice, type Codec, codecOf, flag, int64, message, text, uint64 } from "../codec.ts";
import { type ResponseHeader, responseHeader } from "./kv.ts";

/** A message without fields. */
export type Nothing = Record<string, never>;
export const nothing: Codec<Nothing> = codecOf<Nothing>({});

export interface AuthenticateRequest {
  readonly name: string;
  readonly password: string;
}
export const authenticateRequest: Codec<AuthenticateRequest> = codecOf<AuthenticateRequest>({
  name: { number: 1, kind: text },
  password: { number: 2, kind: text },
});

export interface AuthenticateResponse {
  readonly header: ResponseHeader | undefined;
  readonly token: string;
}
export const authenticateResponse: Codec<AuthenticateResponse> = codecOf<AuthenticateResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  token: { number: 2, kind: text },
});

export interface StatusResponse {
  readonly header: ResponseHeader | undefined;
  readonly version: string;
  readonly dbSize: bigint;
  /** The id of the leader; 0n where the member knows none. */
  readonly leader: bigint;
  readonly raftIndex: bigint;
  readonly raftTerm: bigint;
  readonly raftAppliedIndex: bigint;
  readonly errors: readonly string[];
  readonly dbSizeInUse: bigint;
  readonly isLearner: boolean;
}
export const statusResponse: Codec<StatusResponse> = codecOf<StatusResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  version: { number: 2, kind: text },
  dbSize: { number: 3, kind: int64 },
  leader: { number: 4, kind: uint64 },
  raftIndex: { number: 5, kind: uint64 },
  raftTerm: { number: 6, kind: uint64 },
  raftAppliedIndex: { number: 7, kind: uint64 },
  errors: { number: 8, kind: text, many: true },
  dbSizeInUse: { number: 9, kind: int64 },
  isLearner: { number: 10, kind: flag },
});

export const alarmType = { none: 0, noSpace: 1, corrupt: 2 } as const;

export interface AlarmRequest {
  /** 0: list them. */
  readonly action: number;
  readonly memberId: bigint;
  readonly alarm: number;
}
export const alarmRequest: Codec<AlarmRequest> = codecOf<AlarmRequest>({
  action: { number: 1, kind: choice },
  memberId: { number: 2, kind: uint64 },
  alarm: { number: 3, kind: choice },
});

export interface AlarmMember {
  readonly memberId: bigint;
  readonly alarm: number;
}
const alarmMember: Codec<AlarmMember> = codecOf<AlarmMember>({
  memberId: { number: 1, kind: uint64 },
  alarm: { number: 2, kind: choice },
});

export interface AlarmResponse {
  readonly header: ResponseHeader | undefined;
  readonly alarms: readonly AlarmMember[];
}
export const alarmResponse: Codec<AlarmResponse> = codecOf<AlarmResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  alarms: { number: 2, kind: message(() => alarmMember), many: true },
});

export interface Member {
  readonly id: bigint;
  /** Empty while it has not started yet. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}
const member: Codec<Member> = codecOf<Member>({
  id: { number: 1, kind: uint64 },
  name: { number: 2, kind: text },
  peerUrls: { number: 3, kind: text, many: true },
  clientUrls: { number: 4, kind: text, many: true },
  isLearner: { number: 5, kind: flag },
});

export interface MemberListResponse {
  readonly header: ResponseHeader | undefined;
  readonly members: readonly Member[];
}
export const memberListResponse: Codec<MemberListResponse> = codecOf<MemberListResponse>({
  header: { number: 1, kind: message(() => responseHeader), chosen: true },
  members: { number: 2, kind: message(() => member), many: true },
});
