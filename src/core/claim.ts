/**
 * One request for one lock, from the call to the release: the only wait loop. It appends an entry, decides by the rule
 * whether it holds, waits for a change and decides again; what nobody wants any more it gives back.
 */
import type { Answer, Backend, Entry, NewEntry, Owner, Renewed, Snapshot } from "./backend.ts";
import { channels, type LockEvent, type LossCause } from "./channels.ts";
import type { Clock, Random } from "./clock.ts";
import { showMs } from "./duration.ts";
import { asLockError, LockError, type LockErrorCode } from "./errors.ts";
import { type Rule, ruleOf } from "./grant.ts";
import { type Keeper, marginMs } from "./keeper.ts";

/** What a client gives all its claims. */
export interface Client {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: Owner;
  readonly keeper: Keeper;
  nextEntryId(): string;
  /**
   * Calls `send` once the earlier first appends of this client to the queue have been answered, or have gone without an
   * answer for as long as each was ready to wait.
   */
  inOrder(queue: string, patienceMs: number, send: () => Answer<Snapshot | null>): Answer<Snapshot | null>;
}

/** What is asked for: the options of a request, checked, with defaults in place. */
export interface Wish {
  readonly name: string;
  readonly queue: string;
  readonly mode: "exclusive" | "shared";
  readonly weight: number;
  readonly permits: number | undefined;
  readonly ttlMs: number;
  /** How long to wait; Infinity: for ever. */
  readonly waitMs: number;
  /** Whether null is an answer when it is busy. */
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly metadata: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Where a claim says how its wait ended: one of granted, refused, failed; and failed also if it is stopped before enter. */
export interface Claimant {
  granted(claim: Claim): void;
  /** Busy, and the wish was for null in that case. */
  refused(): void;
  failed(error: unknown): void;
}

/** How often an append is sent until the caller is told that its outcome is unknown. */
const appendTries = 3;
/** How often a grant may come too late to be believed until the caller is told that the ttl is too short. */
const lateGrantTries = 3;

const never = Number.POSITIVE_INFINITY;

/** A request in its queue. It goes waiting → granted → held → ended, and may end at any time. */
export class Claim {
  readonly wish: Wish;
  readonly id: string;
  private readonly client: Client;
  private readonly claimant: Claimant;
  private readonly entry: NewEntry;
  private readonly rule: Rule;
  private readonly startedAt: number;
  private state: "waiting" | "granted" | "held" | "ended" = "waiting";

  /** The store's number of our entry; 0n until the store has answered. */
  seq = 0n;
  /** Until when our entry is surely in the queue, unless somebody takes it out. */
  private validUntil = 0;
  private grantedAt = 0;
  private holdUntil = never;
  private lossCause: LossCause | null = null;
  /** Called once, when holding is no longer certain. */
  onLost: ((why: LossCause) => void) | null = null;

  // The moments at which the keeper has to attend to this claim; dueAt and slot are the agenda's.
  private giveUpAt = never;
  private answerBy = never;
  private lookAt = never;
  private renewAt = never;
  dueAt: number = never;
  slot = -1;

  /** Counts the questions to the store: the answer to an earlier one is not waited for any more. */
  private question = 0;
  private tries = 0;
  private lateGrants = 0;
  /** An append may have reached the store without our hearing of it. */
  private mayBeThere = false;
  private seen: Snapshot | null = null;
  private unwatch: (() => void) | null = null;
  private onAbort: (() => void) | null = null;
  private onAnswer: (() => void) | null = null;

  constructor(client: Client, wish: Wish, claimant: Claimant) {
    this.client = client;
    this.claimant = claimant;
    this.wish = wish;
    this.id = client.nextEntryId();
    this.entry = {
      id: this.id,
      owner: client.owner,
      mode: wish.mode === "shared" ? "read" : "write",
      weight: wish.weight,
      permits: wish.permits,
      ttlMs: wish.ttlMs,
      metadata: wish.metadata,
      onlyIfGranted: wish.ifAvailable || (wish.waitMs === 0 && !wish.steal),
    };
    this.rule = ruleOf(this.entry);
    this.startedAt = client.clock.recent();
    if (wish.waitMs > 0 || wish.steal) this.giveUpAt = this.startedAt + wish.waitMs;
    if (wish.signal !== undefined) this.listenTo(wish.signal);
    if (channels.request.hasSubscribers) channels.request.publish(this.event());
    this.ask();
    if (this.asking) client.keeper.keep(this);
  }

  get queue(): string {
    return this.wish.queue;
  }

  /** Whether the keeper still has to attend to it. */
  get alive(): boolean {
    return this.state !== "ended";
  }

  /** Whether the store is known to have, or to have had, our entry. */
  get joined(): boolean {
    return this.seq !== 0n;
  }

  /** Whether we hold, by the clock of this very moment. Once it was false it stays false. */
  get held(): boolean {
    return this.state === "held" && this.stillValid(this.client.clock.now());
  }

  /** How long we may go on believing if no renewal succeeds, in milliseconds. */
  get validForMs(): number {
    return this.held ? this.believedUntil() - this.client.clock.recent() : 0;
  }

  /** Why holding is no longer certain; null while nothing of that kind has happened. */
  get lostBecause(): LossCause | null {
    return this.lossCause;
  }

  private get asking(): boolean {
    return this.answerBy !== never;
  }

  // 1. Ask: append our entry, or find it again, and learn what is ahead.

  private ask(): void {
    const { backend, clock } = this.client;
    const question = ++this.question;
    let sentAt = clock.recent();
    this.lookAt = never;
    this.answerBy = sentAt + this.wish.ttlMs;
    const send = (): Answer<Snapshot | null> => {
      sentAt = clock.recent();
      return backend.append(this.queue, this.entry, this.wish.signal);
    };
    try {
      const direct = this.joined || backend.traits.callOrder;
      const answer = direct ? send() : this.client.inOrder(this.queue, this.wish.ttlMs, send);
      if (answer instanceof Promise) {
        answer.then(
          (snapshot) => this.answered(question, snapshot, sentAt),
          (error: unknown) => this.failed(question, error),
        );
      } else {
        this.answered(question, answer, sentAt, true);
      }
    } catch (error) {
      this.failed(question, error);
    }
  }

  private answered(question: number, snapshot: Snapshot | null, sentAt: number, atOnce = false): void {
    if (this.state === "ended") return this.tooLate(snapshot !== null);
    if (this.state !== "waiting" || question !== this.question) return;
    this.answerBy = never;
    this.tries = 0;
    if (snapshot === null) return this.refused();
    this.seq = snapshot.self.seq;
    this.believe(sentAt, snapshot.self.expiresInMs);
    this.decide(snapshot, atOnce);
  }

  private failed(question: number, error: unknown): void {
    const what = `the request for lock ${JSON.stringify(this.wish.name)}`;
    const failure = asLockError(error, what, this.details());
    const unknown = failure.code === "LOCK_OUTCOME_UNKNOWN";
    if (unknown) this.mayBeThere = true;
    if (this.state === "ended") return this.tooLate(this.joined || this.mayBeThere);
    if (this.state !== "waiting" || question !== this.question) return;
    this.answerBy = never;
    this.tries += 1;
    const patient = this.joined
      ? failure.retryable && this.client.clock.now() < this.validUntil
      : unknown && this.tries < appendTries;
    if (patient) this.lookSoon();
    else this.stop(failure);
  }

  /** The caller has gone while the store was asked: what the answer brought is given back. */
  private tooLate(mayBeThere: boolean): void {
    this.answerBy = never;
    if (mayBeThere) this.giveBack();
    this.onAnswer?.();
  }

  private lookSoon(): void {
    const { clock, random, keeper } = this.client;
    this.lookAt = clock.now() + Math.min(this.wish.ttlMs / 10, 20 * 2 ** this.tries) * (0.5 + random());
    keeper.keep(this);
  }

  // 2. Decide: the rule looks at what is ahead.

  private decide(snapshot: Snapshot, atOnce = false): void {
    this.seen = snapshot;
    if (this.rule.grants(this.entry, snapshot.ahead)) {
      // An answer that took no time needs no look at the clock.
      if (atOnce || this.client.clock.now() < this.validUntil) this.grant();
      else this.doubt();
    } else if (this.wish.steal) {
      void this.evictAhead();
    } else {
      this.wait(snapshot);
    }
  }

  /** Granted, but our entry may have expired before we heard of it: look again before anybody believes it. */
  private doubt(): void {
    if (++this.lateGrants < lateGrantTries) return this.ask();
    const text = `the store answers later than the ttl of ${showMs(this.wish.ttlMs)}: give a longer ttl`;
    this.stop(this.error("LOCK_UNAVAILABLE", text));
  }

  // 3. Wait: subscribe to the entry that blocks us, and look again at the latest when it would expire.

  private wait(snapshot: Snapshot): void {
    const { backend, clock, random, keeper } = this.client;
    this.endWatch();
    const target = this.rule.blocker(snapshot.ahead);
    const blockedForMs = (target ?? snapshot.ahead.nearest)?.expiresInMs ?? this.wish.ttlMs;
    this.lookAt = clock.recent() + blockedForMs + 1 + 10 * random();
    let over = false;
    this.unwatch = () => {
      over = true;
    };
    const begun = (unwatch: () => void): void => {
      if (over) return unwatch();
      this.unwatch = () => {
        over = true;
        unwatch();
      };
    };
    try {
      const watching = backend.watch(this.queue, snapshot.self, target, (fresh) => {
        if (!over) this.changed(fresh);
      });
      if (watching instanceof Promise) watching.then(begun, () => this.unwatched());
      else begun(watching);
    } catch {
      this.unwatched();
    }
    if (this.state === "waiting") keeper.keep(this);
  }

  /** A watch that cannot be had is replaced by looking. */
  private unwatched(): void {
    if (this.state === "waiting" && !this.asking) this.lookSoon();
  }

  // 4. A hint that something ahead has changed; it may carry what is ahead now.

  private changed(fresh?: Snapshot): void {
    if (this.state !== "waiting" || this.asking) return;
    if (fresh !== undefined && fresh.self.seq === this.seq) this.decide(fresh);
    else this.ask();
  }

  /** Steal: take out everything that is ahead, first to last, then look again. */
  private async evictAhead(): Promise<void> {
    const { backend, clock } = this.client;
    const question = ++this.question;
    this.answerBy = clock.now() + this.wish.ttlMs;
    this.client.keeper.keep(this);
    try {
      const ahead = (await backend.list(this.queue)).filter((entry) => entry.seq < this.seq);
      for (const entry of ahead) {
        if (this.state !== "waiting" || question !== this.question) break;
        await backend.remove(this.queue, entry.id, true, entry.seq);
      }
      if (channels.steal.hasSubscribers) {
        const evicted = ahead.map(({ id, seq }) => ({ id, token: seq }));
        channels.steal.publish({ ...this.event(), evicted });
      }
      if (this.state === "ended") this.tooLate(true);
      else if (this.state === "waiting" && question === this.question) this.ask();
    } catch (error) {
      this.failed(question, error);
    }
  }

  // 5. Granted: announced first, entered when the caller's turn comes, so that an abort in between still counts.

  private grant(): void {
    const { clock, keeper } = this.client;
    const waited = this.unwatch !== null;
    this.endWatch();
    this.state = "granted";
    this.giveUpAt = never;
    this.lookAt = never;
    this.grantedAt = clock.recent();
    this.holdUntil = this.grantedAt + this.wish.maxHoldMs;
    // Without a watchdog an entry that has waited is renewed once more, so that it is held for a full ttl.
    if (!this.wish.renew) this.renewAt = waited ? this.grantedAt : never;
    keeper.keep(this);
    this.claimant.granted(this);
  }

  /** The caller takes the grant. False if it was given back meanwhile. */
  enter(): boolean {
    if (this.state !== "granted") return this.state === "held";
    this.state = "held";
    this.unlisten();
    if (channels.grant.hasSubscribers) {
      const waitedMs = this.grantedAt - this.startedAt;
      channels.grant.publish({ ...this.event(), token: this.seq, waitedMs });
    }
    return true;
  }

  private refused(): void {
    if (!this.wish.ifAvailable) return this.stop(this.error("LOCK_TIMEOUT", "it is busy, and the wait is 0"));
    this.end();
    this.publishCancel("BUSY");
    this.claimant.refused();
  }

  // What the keeper asks of a claim.

  /** When the keeper has to attend to it next. */
  nextMoment(): number {
    const waitingMoment = Math.min(this.giveUpAt, this.answerBy, this.lookAt, this.renewAt);
    return this.state === "waiting" ? waitingMoment : Math.min(this.renewAt, this.believedUntil());
  }

  /** Does what is due. True if the entry is to be renewed now. */
  attend(now: number): boolean {
    if (this.state === "waiting") {
      if (now >= this.giveUpAt) {
        this.stop(this.waitIsOver());
        return false;
      }
      if (now >= this.answerBy) {
        const text = `the store has not answered within the ttl of ${showMs(this.wish.ttlMs)}`;
        this.failed(this.question, this.error("LOCK_OUTCOME_UNKNOWN", text));
      }
      if (now >= this.lookAt && !this.asking) this.ask();
    } else if (!this.stillValid(now)) {
      return false;
    }
    if (now < this.renewAt) return false;
    const renewing = this.state === "waiting" || this.wish.renew;
    const boundReached = this.validUntil >= this.holdUntil;
    this.renewAt = renewing && !boundReached ? this.client.keeper.renewalAfter(now, this.wish.ttlMs) : never;
    return this.joined && !boundReached;
  }

  /** Takes the answer to a renewal that was sent at `sentAt`. */
  renewed(answer: Renewed, sentAt: number): void {
    if (channels.renew.hasSubscribers) channels.renew.publish({ ...this.event(), ...answer });
    const { clock, random } = this.client;
    const now = clock.now();
    if (this.state !== "waiting" && !this.stillValid(now)) return;
    if (answer.outcome === "renewed") {
      this.believe(sentAt, answer.expiresInMs);
    } else if (answer.outcome === "unknown") {
      if (this.renewAt !== never) this.renewAt = now + (this.wish.ttlMs / 12) * (0.5 + random());
    } else if (this.state === "waiting") {
      // Displaced: join again at the tail.
      this.changed();
    } else {
      this.lose(answer.evicted === true ? "evicted" : "gone");
    }
  }

  // Belief: counted from before the request that the store answered, never beyond maxHold.

  private believe(sentAt: number, lifeMs: number): void {
    this.validUntil = Math.max(this.validUntil, sentAt + lifeMs - marginMs(lifeMs));
    if (this.state === "waiting" || this.wish.renew) {
      this.renewAt = this.client.keeper.renewalAfter(sentAt, this.wish.ttlMs);
    }
  }

  private believedUntil(): number {
    return Math.min(this.validUntil, this.holdUntil);
  }

  private stillValid(now: number): boolean {
    if (now < this.believedUntil()) return true;
    this.lose(now < this.holdUntil ? "expired" : "max-hold");
    return false;
  }

  private lose(why: LossCause): void {
    this.lossCause = why;
    this.end();
    if (channels.lost.hasSubscribers) {
      const heldMs = this.client.clock.now() - this.grantedAt;
      channels.lost.publish({ ...this.event(), token: this.seq, why, heldMs });
    }
    this.onLost?.(why);
  }

  // Leaving.

  /** Takes our entry out, once. Rejects with a LockError if the store does not say what became of it. */
  leave(): Answer<"released" | "gone"> {
    this.end();
    const { backend } = this.client;
    try {
      const answer = backend.remove(this.queue, this.id);
      if (answer instanceof Promise) return this.left(answer);
      return this.publishRelease(answer ? "released" : "gone");
    } catch (error) {
      return this.left(Promise.reject(error));
    }
  }

  private async left(answer: Promise<boolean>): Promise<"released" | "gone"> {
    try {
      return this.publishRelease((await this.inTime(answer)) ? "released" : "gone");
    } catch (error) {
      this.giveBack();
      this.publishRelease("unknown");
      throw asLockError(error, `the release of lock ${JSON.stringify(this.wish.name)}`, this.details());
    }
  }

  /** The store's answer, waited for no longer than the entry could live. */
  private inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.client.clock.after(this.wish.ttlMs, () => {
        const text = "the store has not answered the release: the lock is free at the end of its ttl";
        reject(this.error("LOCK_OUTCOME_UNKNOWN", text));
      });
      void answer.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  /** Ends it because the client closes; resolves when nothing of it is under way any more. */
  close(): Promise<void> {
    const error = this.error("LOCK_CLOSED", "the LockManager was closed");
    const asking = this.asking;
    if (this.state === "held") {
      this.lose("closed");
      this.giveBack();
    } else {
      this.stop(error);
    }
    if (!asking) return Promise.resolve();
    return new Promise((resolve) => {
      this.onAnswer = resolve;
    });
  }

  /** Ends a request that is not yet entered. */
  private stop(error: unknown): void {
    if (this.state !== "waiting" && this.state !== "granted") return;
    const asking = this.asking;
    this.end();
    this.publishCancel(error instanceof LockError ? error.code : "LOCK_ABORTED");
    this.claimant.failed(error);
    if (!asking && (this.joined || this.mayBeThere)) this.giveBack();
  }

  private end(): void {
    this.state = "ended";
    this.endWatch();
    this.unlisten();
    this.client.keeper.drop(this);
  }

  private giveBack(): void {
    this.client.keeper.discard(this.queue, this.id, this.wish.ttlMs);
  }

  private endWatch(): void {
    const unwatch = this.unwatch;
    this.unwatch = null;
    unwatch?.();
  }

  private listenTo(signal: AbortSignal): void {
    this.onAbort = () => this.stop(signal.reason);
    signal.addEventListener("abort", this.onAbort, { once: true });
  }

  private unlisten(): void {
    if (this.onAbort === null) return;
    this.wish.signal?.removeEventListener("abort", this.onAbort);
    this.onAbort = null;
  }

  // What people get to see.

  private waitIsOver(): LockError {
    const wait = `the wait of ${showMs(this.wish.waitMs)}`;
    if (this.seen === null) {
      return this.error("LOCK_UNAVAILABLE", `the store has not answered within ${wait}`);
    }
    const { count, nearest } = this.seen.ahead;
    return this.error(
      "LOCK_TIMEOUT",
      `not granted within ${wait}: ${count} ahead, the nearest is ${describe(nearest)}`,
    );
  }

  private error(code: LockErrorCode, text: string): LockError {
    const { name } = this.wish;
    return new LockError(
      code,
      `lock ${JSON.stringify(name)} on ${this.client.backend.name}: ${text}`,
      this.details(),
    );
  }

  private details(): { lock: string; backend: string } {
    return { lock: this.wish.name, backend: this.client.backend.name };
  }

  private event(): LockEvent {
    const { backend, owner } = this.client;
    return {
      name: this.wish.name,
      mode: this.wish.mode,
      backend: backend.name,
      clientId: owner.client,
      id: this.id,
    };
  }

  private publishCancel(code: LockErrorCode | "BUSY"): void {
    if (!channels.cancel.hasSubscribers) return;
    const waitedMs = this.client.clock.now() - this.startedAt;
    channels.cancel.publish({ ...this.event(), code, waitedMs });
  }

  private publishRelease<Outcome extends "released" | "gone" | "unknown">(outcome: Outcome): Outcome {
    if (channels.release.hasSubscribers) {
      const heldMs = this.client.clock.now() - this.grantedAt;
      channels.release.publish({ ...this.event(), token: this.seq, outcome, heldMs });
    }
    return outcome;
  }
}

function describe(entry: Entry | null): string {
  if (entry === null) return "unknown";
  const { host, pid, label } = entry.owner;
  return `${label === undefined ? "" : `${JSON.stringify(label)}, `}pid ${pid} on ${host}`;
}
