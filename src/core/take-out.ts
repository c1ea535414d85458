/** The release of a held lock: asks the store to take the entry out, and waits for its answer no longer than is useful. */
import type { Answer } from "./backend.ts";
import { asLockError } from "./errors.ts";
import * as report from "./report.ts";
import type { Client, Wish } from "./wish.ts";

/** Whose entry is taken out. */
interface Leaver {
  readonly id: string;
  readonly seq: bigint;
  readonly wish: Wish;
  readonly client: Client;
  /** An append may have reached the store without our hearing of it. */
  readonly doubtful: boolean;
}

/** "gone" if the store did not have it any more. Rejects with a LockError if the store does not say. */
export function takeOut(leaver: Leaver, heldSince: number): Answer<"released" | "gone"> {
  const { backend } = leaver.client;
  try {
    const answer = backend.remove(leaver.wish.queue, leaver.id, false, leaver.seq);
    if (answer instanceof Promise) return answered(leaver, heldSince, answer);
    return ended(leaver, heldSince, answer ? "released" : "gone");
  } catch (error) {
    return answered(leaver, heldSince, Promise.reject(error));
  }
}

/** Waits for the store's answer, no longer than the entry could live. One promise and one timer: there is one for each release. */
function answered(leaver: Leaver, heldSince: number, answer: Promise<boolean>): Promise<"released" | "gone"> {
  const { client, wish, id } = leaver;
  return new Promise((resolve, reject) => {
    let over = false;
    const fail = (error: unknown): void => {
      if (over) return;
      over = true;
      timer.cancel();
      client.keeper.discard(wish.queue, id, wish.ttlMs);
      ended(leaver, heldSince, "unknown");
      reject(
        asLockError(error, `the release of lock ${JSON.stringify(wish.name)}`, report.detailsOf(leaver)),
      );
    };
    const timer = client.clock.after(wish.ttlMs, () => {
      const text = "the store has not answered the release: the lock is free at the end of its ttl";
      fail(report.errorOf(leaver, "LOCK_OUTCOME_UNKNOWN", text));
    });
    answer.then((removed) => {
      if (over) return;
      over = true;
      timer.cancel();
      resolve(ended(leaver, heldSince, removed ? "released" : "gone"));
    }, fail);
  });
}

function ended<Outcome extends "released" | "gone" | "unknown">(
  leaver: Leaver,
  heldSince: number,
  outcome: Outcome,
): Outcome {
  // A late append may have brought another entry with our id: it goes, too, but it is not what was held.
  const { client, wish, id } = leaver;
  if (outcome === "gone" && leaver.doubtful) client.keeper.discard(wish.queue, id, wish.ttlMs);
  report.reportRelease(leaver, outcome, client.clock.recent() - heldSince);
  return outcome;
}
