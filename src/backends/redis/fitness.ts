/** What becomes of servers that are not as they should be, once somebody wants to use them; what they are like is left to health.ts. */
import type { Backend, Examinable, Finding } from "../../core/backend.ts";
import { invalid, LockError } from "../../core/errors.ts";
import { findingText } from "../../core/findings.ts";

/** What becomes of findings. */
export type Health = "warn" | "refuse" | "ignore";

/** The setting, checked. */
export function healthOf(given: unknown, backend: string): Health {
  if (given === "warn" || given === "refuse" || given === "ignore") return given;
  throw invalid("the option health is warn, refuse or ignore", { backend });
}

/** A backend that can say when its server answers, and what it is like. */
type Examined = Pick<Backend, "name"> & Examinable & { ready(): Promise<void> };

/**
 * Waits until a server answers, and gives what is to be warned of. Rejects with LOCK_UNAVAILABLE if it does not, or with
 * LOCK_UNSUPPORTED if it is to be refused.
 */
export async function unfitnessOf(backend: Examined, health: Health): Promise<readonly Finding[]> {
  await backend.ready();
  if (health === "ignore") return [];
  const bad = (await findings(backend)).filter(({ level }) => level !== "ok");
  if (health === "warn" || bad.length === 0) return bad;
  const message = `${backend.name}: this server is not fit: ${bad.map(findingText).join("; ")}`;
  throw new LockError("LOCK_UNSUPPORTED", message, { backend: backend.name });
}

/** A user that may not ask INFO is one that an administrator has restricted: nothing can be said. */
async function findings(backend: Examined): Promise<readonly Finding[]> {
  try {
    return await backend.examine();
  } catch (error) {
    const todo = "allow +info, or set health to ignore";
    return [{ level: "warning", about: "examination", seen: `not possible: ${String(error)}`, todo }];
  }
}
