/** What people and diagnostics get to see of a claim: errors and channel messages. None of it decides anything. */
import type { Entry } from "./backend.ts";
import { channels, type LockEvent, type LossCause } from "./channels.ts";
import { showMs } from "./duration.ts";
import { LockError, type LockErrorCode } from "./errors.ts";

/** A store, as far as messages name it. */
interface Store {
  readonly name: string;
  readonly place?: string | undefined;
}

/** A store by its name, and where it is if it says so. */
export function storeText({ name, place }: Store): string {
  return place === undefined ? name : `${name} at ${place}`;
}

/** What a report says about whom. */
export interface Subject {
  readonly id: string;
  readonly seq: bigint;
  readonly wish: { readonly name: string; readonly mode: "exclusive" | "shared" };
  readonly client: {
    readonly clock: { recent(): number };
    readonly backend: Store;
    readonly owner: { readonly client: string };
  };
}

/** The fields that all messages have. */
export function eventOf({ id, wish, client }: Subject): LockEvent {
  const { name, mode } = wish;
  return { name, mode, backend: client.backend.name, clientId: client.owner.client, id };
}

export function reportRequest(subject: Subject): void {
  if (channels.request.hasSubscribers) channels.request.publish(eventOf(subject));
}

export function reportGrant(subject: Subject, waitedMs: number): void {
  if (channels.grant.hasSubscribers) {
    channels.grant.publish({ ...eventOf(subject), token: subject.seq, waitedMs });
  }
}

export function reportLoss(subject: Subject, why: LossCause, heldMs: number): void {
  if (channels.lost.hasSubscribers) {
    channels.lost.publish({ ...eventOf(subject), token: subject.seq, why, heldMs });
  }
}

export function reportSteal(subject: Subject, entries: readonly Entry[]): void {
  if (!channels.steal.hasSubscribers) return;
  const evicted = entries.map(({ id, seq }) => ({ id, token: seq }));
  channels.steal.publish({ ...eventOf(subject), evicted });
}

export function reportCancel(subject: Subject, error: unknown, waitedMs: number): void {
  if (!channels.cancel.hasSubscribers) return;
  const code = error === "BUSY" ? error : error instanceof LockError ? error.code : "LOCK_ABORTED";
  channels.cancel.publish({ ...eventOf(subject), code, waitedMs });
}

export function reportRelease(
  subject: Subject,
  outcome: "released" | "gone" | "unknown",
  heldSince: number,
): void {
  if (channels.release.hasSubscribers) {
    const heldMs = subject.client.clock.recent() - heldSince;
    channels.release.publish({ ...eventOf(subject), token: subject.seq, outcome, heldMs });
  }
}

/** The lock and the backend of an error. */
export function detailsOf({ wish, client }: Subject): { lock: string; backend: string } {
  return { lock: wish.name, backend: client.backend.name };
}

/** An error about a claim: says which lock, on which store, and what. */
export function errorOf(subject: Subject, code: LockErrorCode, text: string): LockError {
  const details = detailsOf(subject);
  const shown = `lock ${JSON.stringify(details.lock)} on ${storeText(subject.client.backend)}`;
  return new LockError(code, `${shown}: ${text}`, details);
}

/** The caller's patience has ended: is it held, or is the store broken? */
export function waitIsOver(
  subject: Subject,
  waitMs: number,
  seen: { readonly seenAhead: number; readonly seenNearest: Entry | null },
): LockError {
  const wait = `the wait of ${showMs(waitMs)}`;
  const { seenAhead, seenNearest } = seen;
  if (seenAhead < 0) return errorOf(subject, "LOCK_UNAVAILABLE", `the store has not answered within ${wait}`);
  const text = `not granted within ${wait}: ${seenAhead} ahead, the nearest is ${ownerOf(seenNearest)}`;
  return errorOf(subject, "LOCK_TIMEOUT", text);
}

function ownerOf(entry: Entry | null): string {
  if (entry === null) return "unknown";
  const { host, pid, label } = entry.owner;
  return `${label === undefined ? "" : `${JSON.stringify(label)}, `}pid ${pid} on ${host}`;
}

/** Why a lock is not held any more; null stands for a release. */
export function lossError(subject: Subject, why: LossCause | null): LockError {
  const text = why === null ? "it was released" : lossTexts[why];
  return errorOf(subject, "LOCK_LOST", `it is not held any more: ${text}`);
}

const lossTexts: Record<LossCause, string> = {
  expired:
    "its ttl passed before a renewal was answered; block the event loop for less long, or give a longer ttl",
  evicted: "somebody else took it away (steal or a forced release)",
  gone: "the store does not have it any more (removed by hand, restarted empty, or failed over)",
  "max-hold": "it was held for maxHold, and the watchdog stopped",
  closed: "its LockManager was closed",
};
