/** What goes wrong between this client and etcd, and whether a call that failed may have been carried out all the same. */

/** The codes of gRPC that are looked at; there are others. */
export const status = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** Answers by which a server refuses a call before it does anything. */
const refusals: ReadonlySet<number> = new Set([
  status.invalidArgument,
  status.notFound,
  status.permissionDenied,
  status.resourceExhausted,
  status.failedPrecondition,
  status.outOfRange,
  status.unimplemented,
  status.unauthenticated,
]);

/** A call that failed. */
export class EtcdError extends Error {
  /** The gRPC status: what the server said, or what comes closest where it said nothing. */
  readonly status: number;
  /** Whether the call surely was not carried out. */
  readonly notDone: boolean;
  /** The server that was asked; undefined where none could be. */
  readonly endpoint: string | undefined;

  constructor(
    message: string,
    details: { status: number; notDone: boolean; endpoint?: string | undefined; cause?: unknown },
  ) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = "EtcdError";
    this.status = details.status;
    this.notDone = details.notDone;
    this.endpoint = details.endpoint;
  }
}

/** The error that an answer of a server stands for. */
export function refusal(code: number, message: string, endpoint: string): EtcdError {
  // Without a leader a server refuses at once; after a change of leader a call may or may not have made it.
  const leaderless = code === status.unavailable && /no leader/.test(message);
  const text = message === "" ? `gRPC status ${code}` : message;
  return new EtcdError(text, { status: code, notDone: leaderless || refusals.has(code), endpoint });
}
