/** From what went wrong with a request to ZooKeeper to what the core is told. */
import { LockError } from "../../core/errors.ts";
import { hasZooCode, ZooError } from "./client/index.ts";

/** An error of a call: what surely did not happen is unavailable, what may have happened is unknown. */
export function asFailure(error: unknown, what: string): unknown {
  if (!(error instanceof ZooError)) return error;
  const details = { backend: "zookeeper", cause: error };
  if (hasZooCode(error, "connectionLoss") && !error.unsent) {
    return new LockError("LOCK_OUTCOME_UNKNOWN", `${what} on zookeeper: ${error.message}`, details);
  }
  const advice = hasZooCode(error, "noAuth") ? "; give credentials (auth) that may change these nodes" : "";
  return new LockError("LOCK_UNAVAILABLE", `${what} on zookeeper: ${error.message}${advice}`, details);
}

/** This client was closed. */
export function closedError(): LockError {
  return new LockError("LOCK_CLOSED", "this client of zookeeper was closed", { backend: "zookeeper" });
}
