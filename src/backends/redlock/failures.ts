/** Errors of a fleet of nodes: what each of them said, and what that means for the whole. */
import { LockError, type LockErrorCode } from "../../core/errors.ts";

/** Why the vote of a node is void. */
export interface NodeFailure {
  readonly node: string;
  readonly error: LockError;
}

/** An error of this backend. */
export function redlockError(code: LockErrorCode, message: string, cause?: unknown): LockError {
  const text = `redlock: ${message}`;
  return new LockError(
    code,
    text,
    cause === undefined ? { backend: "redlock" } : { backend: "redlock", cause },
  );
}

/** Too few nodes could vote. */
export function tooFew(
  code: "LOCK_UNAVAILABLE" | "LOCK_OUTCOME_UNKNOWN",
  failures: readonly NodeFailure[],
  nodes: number,
  quorum: number,
): LockError {
  const list = failures.map(({ node, error }) => `${node}: ${withoutName(error.message)}`).join("; ");
  const cause = new AggregateError(
    failures.map(({ error }) => error),
    "what the nodes said",
  );
  const left = nodes - failures.length;
  return redlockError(
    code,
    // Decided as soon as too many failed: the others were not waited for.
    `at most ${left} of ${nodes} nodes can vote, and ${quorum} have to agree; ${list}`,
    cause,
  );
}

/** The error of one node says "redis: …"; in a list of nodes that is said once. */
function withoutName(message: string): string {
  return message.replace(/^(?:redis|redlock): /, "");
}

/** The client was closed. */
export function closed(): LockError {
  return redlockError("LOCK_CLOSED", "this client of redlock was closed");
}
