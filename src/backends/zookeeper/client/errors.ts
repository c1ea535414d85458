/** What can go wrong with a request to ZooKeeper: the server's codes, and what the client itself can say. */

/** The codes that callers tell apart; the server knows more. */
export const zooCodes = {
  connectionLoss: -4,
  unimplemented: -6,
  badArguments: -8,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
} as const;

const names = new Map<number, string>(Object.entries(zooCodes).map(([name, code]) => [code, name]));

/** A request that was refused or whose answer will never come. */
export class ZooError extends Error {
  /** One of zooCodes, or another code of the server. */
  readonly code: number;
  /** True if the request was never sent: it surely did not happen. */
  readonly unsent: boolean;

  constructor(code: number, message: string, options: { unsent?: boolean; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "ZooError";
    this.code = code;
    this.unsent = options.unsent ?? false;
  }
}

/** What the server answered to a request that it refused. */
export function refusal(code: number, what: string): ZooError {
  return new ZooError(code, `${what}: ${names.get(code) ?? "refused"} (${code})`);
}

/** The connection ended before the answer came; a request that was sent may or may not have happened. */
export function connectionLoss(unsent: boolean, cause?: unknown): ZooError {
  const why = cause instanceof Error && cause.message !== "" ? `: ${cause.message}` : "";
  const message = unsent
    ? `no server of ZooKeeper could be reached, and the request was not sent${why}`
    : `the connection to ZooKeeper ended before the answer came${why}`;
  return new ZooError(zooCodes.connectionLoss, message, { unsent, cause });
}

/** The session is over, and all that hung on it. */
export function sessionExpired(unsent: boolean): ZooError {
  return new ZooError(zooCodes.sessionExpired, "the session of ZooKeeper has expired", { unsent });
}

/** A server sent bytes that are not of the protocol. */
export class MalformedFrame extends Error {
  override readonly name = "MalformedFrame";
}

/** Whether an error is a ZooError with a given code. */
export function hasZooCode(error: unknown, code: keyof typeof zooCodes): error is ZooError {
  return error instanceof ZooError && error.code === zooCodes[code];
}
