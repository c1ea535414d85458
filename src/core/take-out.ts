/** The release of a held lock: asks the store to take the entry out, and waits for its answer no longer than is useful. */
import type { Due, Moment } from "./agenda.ts";
import type { Answer } from "./backend.ts";
import { asLockError, type LockError } from "./errors.ts";
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
  /** The entry that has the lock from this one without the store's word; null if none has. */
  readonly heir: string | null;
}

/** Who is told how a release ended that the store did not answer at once. */
export interface Released {
  /** "gone" if the store did not have it any more; an error if the store does not say. */
  left(outcome: "released" | "gone" | LockError): void;
}

/** "gone" if the store did not have it any more; null if that is told later. */
export function takeOut(leaver: Leaver, heldSince: number, told: Released): "released" | "gone" | null {
  try {
    const answer = remove(leaver);
    if (!(answer instanceof Promise)) return ended(leaver, heldSince, answer ? "released" : "gone");
    awaitAnswer(leaver, heldSince, told, answer);
  } catch (error) {
    awaitAnswer(leaver, heldSince, told, Promise.reject(error));
  }
  return null;
}

function remove({ client, wish, id, seq, heir }: Leaver): Answer<boolean> {
  const { backend } = client;
  if (heir !== null && backend.handOver !== undefined) return backend.handOver(wish.queue, id, seq, heir);
  return backend.remove(wish.queue, id, false, seq);
}

/** Waits for the store's answer, no longer than the entry could live. A function of its own: a store that answers at once pays for no closures. */
function awaitAnswer(leaver: Leaver, heldSince: number, told: Released, answer: Promise<boolean>): void {
  const leaving = new Leaving(leaver, heldSince, told);
  leaver.client.keeper.await(leaving);
  answer.then(
    (removed) => leaving.answered(removed),
    (error: unknown) => leaving.failed(error),
  );
}

/** A release whose answer is awaited: few objects and no timer of its own, since there is one for each release. */
export class Leaving implements Due<Leaving> {
  private readonly leaver: Leaver;
  private readonly heldSince: number;
  private readonly told: Released;
  private over = false;

  // These belong to the keeper's agenda.
  moment: Moment<Leaving> | null = null;
  earlier: Leaving | null = null;
  later: Leaving | null = null;

  constructor(leaver: Leaver, heldSince: number, told: Released) {
    this.leaver = leaver;
    this.heldSince = heldSince;
    this.told = told;
  }

  /** How long an answer is worth waiting for. */
  get withinMs(): number {
    return this.leaver.wish.ttlMs;
  }

  answered(removed: boolean): void {
    if (this.isOver()) return;
    this.told.left(ended(this.leaver, this.heldSince, removed ? "released" : "gone"));
  }

  failed(error: unknown): void {
    if (this.isOver()) return;
    const { leaver } = this;
    const { client, wish, id } = leaver;
    client.keeper.discard(wish.queue, id, wish.ttlMs);
    ended(leaver, this.heldSince, "unknown");
    const what = `the release of lock ${JSON.stringify(wish.name)}`;
    this.told.left(asLockError(error, what, report.detailsOf(leaver)));
  }

  /** No answer has come in time. */
  late(): void {
    const text = "the store has not answered the release: the lock is free at the end of its ttl";
    this.failed(report.errorOf(this.leaver, "LOCK_OUTCOME_UNKNOWN", text));
  }

  /** Whether it was settled before; from now on it is. */
  private isOver(): boolean {
    const { over } = this;
    this.over = true;
    this.leaver.client.keeper.heard(this);
    return over;
  }
}

function ended<Outcome extends "released" | "gone" | "unknown">(
  leaver: Leaver,
  heldSince: number,
  outcome: Outcome,
): Outcome {
  // A late append may have brought another entry with our id: it goes, too, but it is not what was held.
  const { client, wish, id } = leaver;
  if (outcome === "gone" && leaver.doubtful) client.keeper.discard(wish.queue, id, wish.ttlMs);
  // Whoever took this one out may have taken out the next one, too.
  if (outcome === "gone" && leaver.heir !== null) client.keeper.check(wish.queue, leaver.heir);
  report.reportRelease(leaver, outcome, heldSince);
  return outcome;
}
