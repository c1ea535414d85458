/** The calls of etcd that this client makes: where each is found, and the messages there and back. */
import type { Codec } from "./codec.ts";
import * as cluster from "./messages/cluster.ts";
import * as kv from "./messages/kv.ts";
import * as lease from "./messages/lease.ts";
import * as txn from "./messages/txn.ts";

/** A call with one message there and one back. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
}

function method<Request, Response>(
  name: string,
  request: Codec<Request>,
  response: Codec<Response>,
): Method<Request, Response> {
  return { path: `/etcdserverpb.${name}`, request, response };
}

export const range: Method<kv.RangeRequest, kv.RangeResponse> = method(
  "KV/Range",
  kv.rangeRequest,
  kv.rangeResponse,
);
export const put: Method<kv.PutRequest, kv.PutResponse> = method("KV/Put", kv.putRequest, kv.putResponse);
export const deleteRange: Method<kv.DeleteRangeRequest, kv.DeleteRangeResponse> = method(
  "KV/DeleteRange",
  kv.deleteRangeRequest,
  kv.deleteRangeResponse,
);
export const transact: Method<txn.TxnRequest, txn.TxnResponse> = method(
  "KV/Txn",
  txn.txnRequest,
  txn.txnResponse,
);
export const leaseGrant: Method<lease.LeaseGrantRequest, lease.LeaseGrantResponse> = method(
  "Lease/LeaseGrant",
  lease.leaseGrantRequest,
  lease.leaseGrantResponse,
);
export const leaseRevoke: Method<lease.LeaseRevokeRequest, lease.LeaseRevokeResponse> = method(
  "Lease/LeaseRevoke",
  lease.leaseRevokeRequest,
  lease.leaseRevokeResponse,
);
/** A stream by its definition, used for one keep-alive at a time: so that each has a deadline of its own. */
export const leaseKeepAlive: Method<lease.LeaseKeepAliveRequest, lease.LeaseKeepAliveResponse> = method(
  "Lease/LeaseKeepAlive",
  lease.leaseKeepAliveRequest,
  lease.leaseKeepAliveResponse,
);
export const leaseTimeToLive: Method<lease.LeaseTimeToLiveRequest, lease.LeaseTimeToLiveResponse> = method(
  "Lease/LeaseTimeToLive",
  lease.leaseTimeToLiveRequest,
  lease.leaseTimeToLiveResponse,
);
export const authenticate: Method<cluster.AuthenticateRequest, cluster.AuthenticateResponse> = method(
  "Auth/Authenticate",
  cluster.authenticateRequest,
  cluster.authenticateResponse,
);
export const memberStatus: Method<cluster.Nothing, cluster.StatusResponse> = method(
  "Maintenance/Status",
  cluster.nothing,
  cluster.statusResponse,
);
export const alarm: Method<cluster.AlarmRequest, cluster.AlarmResponse> = method(
  "Maintenance/Alarm",
  cluster.alarmRequest,
  cluster.alarmResponse,
);
export const memberList: Method<cluster.Nothing, cluster.MemberListResponse> = method(
  "Cluster/MemberList",
  cluster.nothing,
  cluster.memberListResponse,
);
