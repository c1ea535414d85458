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
  const text = `${what} on zookeeper: ${error.message}${adviceOn(error)}`;
  return new LockError("LOCK_UNAVAILABLE", text, details);
}

function adviceOn(error: ZooError): string {
  if (hasZooCode(error, "noAuth")) return "; give credentials (auth) that may change these nodes";
  if (hasZooCode(error, "noNode")) return "; the nodes above it are missing, and we may not make them";
  if (hasZooCode(error, "authFailed")) return "; check the scheme and the secret of auth";
  return hasZooCode(error, "invalidAcl") ? '; check acl: the scheme "auth" needs credentials' : "";
}

/** This client was closed. */
export function closedError(): LockError {
  return new LockError("LOCK_CLOSED", "this client of zookeeper was closed", { backend: "zookeeper" });
}
