/**
 * One request for one lock, from the call to the release: the only wait loop. It appends an entry, decides by the rule
 * whether it holds, waits for a change and decides again; what nobody wants any more it gives back.
 */
import { onAbort } from "./aborts.ts";
import type { Due, Moment } from "./agenda.ts";
import type { Entry, EntryMode, NewEntry, Renewal, Renewed, Snapshot } from "./backend.ts";
import { channels, type LossCause } from "./channels.ts";
import type { Company, Kept } from "./company.ts";
import { showMs } from "./duration.ts";
import { asLockError, type LockError } from "./errors.ts";
import { evictionOrder, exclusive, type Rule, ruleOf } from "./grant.ts";
import { marginMs } from "./keeper.ts";
import * as report from "./report.ts";
import { type Released, takeOut } from "./take-out.ts";
import { Wait } from "./wait.ts";
import type { Client, Wish } from "./wish.ts";

/** Where a claim says how its wait ended: granted, refused or failed; and failed, too, if it is stopped before `enter`. */
export interface Claimant {
  granted(claim: Claim): void;
  /** Busy, and the wish was for null in that case. */
  refused(): void;
  failed(error: unknown): void;
  /** Holding is no longer certain. */
  lost?(claim: Claim, why: LossCause): void;
}

/** How often an append is sent until the caller is told that its outcome is unknown. */
const appendTries = 3;
/** How often a grant may come too late to be believed until the caller is told that the ttl is too short. */
const lateGrantTries = 3;

/** How often those ahead are evicted until the caller is told that the store does not do it. */
const theftTries = 10;

/** How often in a row a lock is handed over without asking the store. Then the event loop has its turn, and the store its say. */
const mostHandOvers = 64;

const never = Number.POSITIVE_INFINITY;

/** A request in its queue. It goes waiting → granted → held → ended, and may end at any time. */
export class Claim implements Due<Kept> {
  readonly wish: Wish;
  readonly id: string;
  readonly client: Client;
  private readonly claimant: Claimant;
  private readonly startedAt: number;
  private state: "waiting" | "granted" | "held" | "ended" = "waiting";
  private wait: Wait | null = null;

  /** The store's number of our entry; 0n until the store has answered. */
  seq = 0n;
  /** Until when our entry is surely in the queue, unless somebody takes it out. */
  private validUntil = 0;
  private grantedAt = 0;
  private renewAt: number = never;
  private asked: Renewal | null = null;
  private lossCause: LossCause | null = null;
  /** Whether its holder has released it. */
  hasLeft = false;
  /** The entry that it was handed over to without asking the store. */
  heir: string | null = null;
  /** Called once, when holding is no longer certain. */
  onLost: (() => void) | null = null;

  // These belong to the keeper.
  moment: Moment<Kept> | null = null;
  earlier: Kept | null = null;
  later: Kept | null = null;
  /** Those that it is renewed with, where that is noted for all of them at once. */
  company: Company | null = null;

  constructor(client: Client, wish: Wish, claimant: Claimant) {
    this.client = client;
    this.claimant = claimant;
    this.wish = wish;
    this.id = client.nextEntryId();
    // The work of this turn before the request is no part of a wait that may end.
    this.startedAt = wish.waitMs === never ? this.storeNow() : client.clock.now();
  }

  /** Joins the queue. Called once; the claimant may be told before this returns. */
  start(): void {
    const { signal } = this.wish;
    if (signal !== undefined) this.waiting().endListening = onAbort(signal, () => this.stop(signal.reason));
    report.reportRequest(this);
    this.ask();
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

  /** Looks at the clock, so that a loss is told that nobody has seen yet. */
  tellLoss(): void {
    if (this.state === "held") this.stillValid(this.client.clock.now());
  }

  /** Why holding is no longer certain; null while nothing of that kind has happened. */
  get lostBecause(): LossCause | null {
    return this.lossCause;
  }

  /** The error that says why it is not held any more. */
  lossError(): LockError {
    return report.lossError(this, this.lossCause);
  }

  private get rule(): Rule {
    return ruleOf({ mode: modeOf(this.wish), permits: this.wish.permits });
  }

  private get onlyIfGranted(): boolean {
    const { ifAvailable, waitMs, steal } = this.wish;
    return ifAvailable || (waitMs === 0 && !steal);
  }

  /** Made anew for each question rather than kept: many may wait for long, and few ask twice. */
  private entry(): NewEntry {
    const { id, wish, onlyIfGranted } = this;
    const { weight, permits, ttlMs, metadata } = wish;
    const mode = modeOf(wish);
    return { id, owner: this.client.owner, mode, weight, permits, ttlMs, metadata, onlyIfGranted };
  }

  // 1. Ask: append our entry, or find it again, and learn what is ahead.

  private ask(): void {
    const { backend } = this.client;
    if (!this.joined && !backend.traits.callOrder) return this.askInTurn();
    // The first question is asked as soon as there is somebody to ask it.
    const sentAt = this.wait === null ? this.startedAt : this.storeNow();
    const question = this.wait === null ? 0 : ++this.wait.question;
    try {
      const answer = backend.append(this.queue, this.entry(), this.wish.signal);
      if (!(answer instanceof Promise)) return this.answered(question, answer, sentAt);
      this.awaitAnswer(sentAt);
      answer.then(
        (snapshot) => this.answered(question, snapshot, sentAt),
        (error: unknown) => this.failed(question, error),
      );
    } catch (error) {
      this.failed(question, error);
    }
  }

  /** Asks for the first time after the requests for this queue that this client made before. */
  private askInTurn(): void {
    const { backend, clock, keeper } = this.client;
    const wait = this.waiting();
    const question = ++wait.question;
    let sentAt = 0;
    wait.lookAt = null;
    keeper.keep(this);
    wait.turn = this.client.inOrder(this.queue, async () => {
      // Whoever has gone by now leaves the queue alone; the time for an answer is counted from here.
      if (!this.alive) return;
      sentAt = clock.now();
      this.awaitAnswer(sentAt);
      try {
        const snapshot = await backend.append(this.queue, this.entry(), this.wish.signal);
        this.answered(question, snapshot, sentAt);
      } catch (error) {
        this.failed(question, error);
      }
    });
  }

  /** An answer that takes longer than a ttl could not be believed anyway. */
  private awaitAnswer(sentAt: number): void {
    const { keeper } = this.client;
    const wait = this.waiting();
    wait.lookAt = null;
    wait.answerBy = keeper.lateAfter(sentAt, this.wish.ttlMs);
    // Attended to for nothing if there is no answer by then; but once it is granted it has its moment already.
    if (this.renewAt === never) this.renewAt = keeper.renewalAfter(sentAt, this.wish.ttlMs);
    keeper.keep(this);
  }

  private waiting(): Wait {
    if (this.wait === null) {
      this.wait = new Wait();
      const { waitMs, steal } = this.wish;
      if (waitMs !== never && (waitMs > 0 || steal)) this.wait.giveUpAt = this.startedAt + waitMs;
    }
    return this.wait;
  }

  private answered(question: number, snapshot: Snapshot | null, sentAt: number): void {
    if (this.state === "ended") return this.tooLate(snapshot !== null);
    if (this.state !== "waiting") return;
    if (this.wait !== null) {
      if (question !== this.wait.question) return;
      this.wait.answerBy = null;
      this.wait.tries = 0;
    }
    if (snapshot === null) return this.refused();
    this.takePlace(snapshot.self.seq);
    this.believe(sentAt, snapshot.self.expiresInMs);
    this.decide(snapshot);
  }

  /** Another place in the queue is renewed by other words. */
  private takePlace(seq: bigint): void {
    if (seq !== this.seq) this.asked = null;
    this.seq = seq;
  }

  private failed(question: number, error: unknown): void {
    const what = `the request for lock ${JSON.stringify(this.wish.name)}`;
    const failure = asLockError(error, what, report.detailsOf(this));
    const unknown = failure.code === "LOCK_OUTCOME_UNKNOWN";
    const wait = this.waiting();
    if (unknown) wait.mayBeThere = true;
    if (this.state === "ended") return this.tooLate(this.mayBeThere());
    if (this.state !== "waiting" || question !== wait.question) return;
    wait.answerBy = null;
    wait.passOn();
    wait.tries += 1;
    // Of a process that stood still its entry has expired before its first failure: it may be the connection that has, too.
    const mayTryAgain = wait.tries < appendTries;
    const patient = this.joined
      ? failure.retryable && (mayTryAgain || this.client.clock.now() < this.validUntil)
      : unknown && mayTryAgain;
    if (patient) this.lookSoon();
    else this.stop(failure);
  }

  /**
   * It ended while the store was asked: what the answer brought is given back. But a holder that lost its lock and has
   * not left yet may not know; its entry is left to its ttl until it leaves.
   */
  private tooLate(mayBeThere: boolean): void {
    if (mayBeThere && (this.lossCause === null || this.hasLeft)) this.giveBack();
    if (this.wait === null) return;
    this.wait.answerBy = null;
    this.wait.onAnswer?.();
  }

  private lookSoon(): void {
    const { clock, random, keeper } = this.client;
    const wait = this.waiting();
    wait.lookAt = clock.now() + Math.min(this.wish.ttlMs / 10, 20 * 2 ** wait.tries) * (0.5 + random());
    keeper.keep(this);
  }

  // 2. Decide: the rule looks at what is ahead.

  private decide(snapshot: Snapshot): void {
    if (this.rule.grants(this.wish, snapshot.ahead)) {
      const now = this.storeNow();
      if (now < this.validUntil) this.grant(now);
      else this.doubt();
    } else {
      this.waiting().see(snapshot.ahead);
      if (this.wish.steal) void this.evictAhead();
      else this.watch(snapshot);
    }
  }

  /** Now, by our clock. A store that lives by the same clock has seen no later moment than the last that was read. */
  private storeNow(): number {
    const { clock, backend } = this.client;
    return backend.traits.expiry === "process" ? clock.recent() : clock.now();
  }

  /** Granted, but our entry may have expired before we heard of it: look again before anybody believes it. */
  private doubt(): void {
    if (++this.waiting().lateGrants < lateGrantTries) return this.ask();
    const text = `the store answers later than the ttl of ${showMs(this.wish.ttlMs)}: give a longer ttl`;
    this.stop(report.errorOf(this, "LOCK_UNAVAILABLE", text));
  }

  // 3. Wait: subscribe to the entry that blocks us, and look again at the latest when it would expire.

  private watch(snapshot: Snapshot): void {
    const { backend, clock, random, keeper } = this.client;
    const wait = this.waiting();
    const watch = wait.beginWatch();
    const target = this.rule.blocker(snapshot.ahead);
    this.standBehind(wait, target);
    // Where anybody ahead may make room, the nearest need not be the first to expire.
    const blockedForMs = target?.expiresInMs ?? this.wish.ttlMs / 3;
    wait.lookAt = clock.recent() + blockedForMs + 1 + 10 * random();
    try {
      // A call that comes late, of an earlier watch, does no harm: grants are monotone.
      const standing = backend.watch(this.queue, snapshot.self, target, (fresh) => this.changed(fresh));
      if (!(standing instanceof Promise)) wait.stands(watch, standing);
      else this.awaitWatch(wait, watch, standing);
    } catch {
      this.unwatched();
    }
    if (this.state === "waiting") keeper.keep(this);
  }

  /** Where nobody but an entry of our own client is in our way, its leaving is all that we need to know. */
  private standBehind(wait: Wait, target: Entry | null): void {
    const { backend, owner, behind } = this.client;
    this.standAlone();
    if (backend.handOver === undefined || this.rule !== exclusive) return;
    if (target?.owner.client !== owner.client) return;
    wait.behind = target.id;
    behind.set(target.id, this);
  }

  private standAlone(): void {
    const { behind } = this.client;
    const ahead = this.wait?.behind ?? null;
    if (this.wait === null || ahead === null) return;
    this.wait.behind = null;
    if (behind.get(ahead) === this) behind.delete(ahead);
  }

  private awaitWatch(wait: Wait, watch: number, standing: Promise<() => void>): void {
    standing.then((unwatch) => wait.stands(watch, unwatch)).catch(() => this.unwatched());
  }

  /** A watch that cannot be had is replaced by looking. */
  private unwatched(): void {
    if (this.state === "waiting" && !this.waiting().asking) this.lookSoon();
  }

  // 4. A hint that something ahead has changed; it may carry what is ahead now.

  private changed(fresh?: Snapshot): void {
    if (this.state !== "waiting" || this.waiting().asking) return;
    if (fresh !== undefined && fresh.self.seq === this.seq) this.decide(fresh);
    else this.ask();
  }

  /** Steal: take out everything that is ahead, then look again. */
  private async evictAhead(): Promise<void> {
    const { backend, clock } = this.client;
    const wait = this.waiting();
    if (++wait.thefts > theftTries) {
      const text = "what was ahead is still there after it was evicted: the store is broken";
      return this.stop(report.errorOf(this, "LOCK_UNAVAILABLE", text));
    }
    const question = ++wait.question;
    this.awaitAnswer(clock.now());
    try {
      const ahead = (await backend.list(this.queue)).filter((entry) => entry.seq < this.seq);
      // Nobody is handed a lock by one who is about to lose it.
      for (const { id } of ahead) this.client.behind.delete(id);
      const evicted: Entry[] = [];
      for (const entry of evictionOrder(ahead)) {
        if (this.state !== "waiting" || question !== wait.question) break;
        if (await backend.remove(this.queue, entry.id, true, entry.seq)) evicted.push(entry);
      }
      report.reportSteal(this, evicted);
      if (this.state === "ended") this.tooLate(true);
      else if (this.state === "waiting" && question === wait.question) this.ask();
    } catch (error) {
      this.failed(question, error);
    }
  }

  // 5. Granted: announced first, entered when the caller's turn comes, so that an abort in between still counts.

  private grant(now: number): void {
    this.state = "granted";
    this.wait?.endWatch();
    this.standAlone();
    this.grantedAt = now;
    // Without a watchdog an entry that has waited is renewed once more, so that it is held for a full ttl.
    if (!this.wish.renew) this.renewAt = this.wait?.queued ? this.grantedAt : never;
    this.client.keeper.keep(this);
    this.claimant.granted(this);
  }

  /** The caller takes the grant. False if it was given back meanwhile. */
  enter(): boolean {
    if (this.state !== "granted") return this.state === "held";
    this.state = "held";
    this.unlisten();
    report.reportGrant(this, this.grantedAt - this.startedAt);
    return true;
  }

  private refused(): void {
    if (!this.wish.ifAvailable) {
      return this.stop(report.errorOf(this, "LOCK_TIMEOUT", "it is busy, and the wait is 0"));
    }
    this.end();
    report.reportCancel(this, "BUSY", this.client.clock.recent() - this.startedAt);
    this.claimant.refused();
  }

  // What the keeper asks of a claim.

  /** What the store is asked to renew: the same object for as long as our place in the queue is the same. */
  get renewal(): Renewal {
    const { queue, id, seq } = this;
    return (this.asked ??= { queue, id, seq, ttlMs: this.wish.ttlMs });
  }

  /** Whether a renewal is that of our place in the queue. */
  asks(renewal: Renewal | undefined): boolean {
    return this.asked === renewal;
  }

  /**
   * Whether it can be renewed in company: it is held and has no moment of its own before it is renewed again; the renewal that was just
   * answered is that of its place in the queue, and it is valid now and no longer than until then.
   */
  mayShare(renewal: Renewal | undefined, ttlMs: number, now: number, until: number): boolean {
    const { wish } = this;
    const isFree = this.state === "held" && this.company === null && this.asks(renewal);
    const isPlain = wish.renew && wish.maxHoldMs === never && wish.ttlMs === ttlMs;
    return isFree && isPlain && now < this.validUntil && this.validUntil <= until;
  }

  /** What it has in common with its company is its own from now on. */
  partFrom({ validUntil, renewAt }: Company): void {
    this.validUntil = validUntil;
    this.renewAt = renewAt;
  }

  /** When the keeper has to attend to it next. */
  nextMoment(): number {
    if (this.state !== "waiting") return Math.min(this.renewAt, this.believedUntil());
    return Math.min(this.renewAt, this.waiting().nextMoment());
  }

  /** Does what is due. True if the entry is to be renewed now. */
  attend(now: number): boolean {
    if (this.state === "waiting") {
      if (!this.attendWait(this.waiting(), now)) return false;
    } else if (!this.stillValid(now)) {
      return false;
    }
    if (now < this.renewAt) return false;
    const goesOn = this.state === "waiting" || (this.wish.renew && this.validUntil < this.holdUntil());
    this.renewAt = goesOn ? this.client.keeper.renewalAfter(now, this.wish.ttlMs) : never;
    return this.joined && (goesOn || !this.wish.renew);
  }

  /** Gives up, asks again or looks, as it is due. False if that was the end. */
  private attendWait(wait: Wait, now: number): boolean {
    if (isDue(wait.giveUpAt, now)) {
      this.stop(report.waitIsOver(this, this.wish.waitMs, wait));
      return false;
    }
    if (isDue(wait.answerBy, now)) {
      const text = `the store has not answered within the ttl of ${showMs(this.wish.ttlMs)}`;
      // Whoever does not want to wait has waited long enough.
      if (this.onlyIfGranted) wait.tries = appendTries;
      this.failed(wait.question, report.errorOf(this, "LOCK_OUTCOME_UNKNOWN", text));
    }
    if (isDue(wait.lookAt, now) && !wait.asking) this.ask();
    return this.alive;
  }

  /** Takes the answer to a renewal that was sent at `sentAt` and came at `now`. */
  renewed(answer: Renewed, sentAt: number, now: number): void {
    if (channels.renew.hasSubscribers) channels.renew.publish({ ...report.eventOf(this), ...answer });
    if (this.state !== "waiting" && !this.stillValid(now)) return;
    if (answer.outcome === "renewed") {
      this.believe(sentAt, answer.expiresInMs);
    } else if (answer.outcome === "unknown") {
      if (this.renewAt !== never) this.renewAt = now + (this.wish.ttlMs / 12) * (0.5 + this.client.random());
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
      // A store may give less than was asked for. A little less is what time has passed, and those of one ttl still meet.
      // Where it says that nothing is left, that is tried soon, but not again and again.
      const { ttlMs } = this.wish;
      const givenMs = lifeMs > 0 ? lifeMs : ttlMs / 12;
      this.renewAt = this.client.keeper.renewalAfter(sentAt, givenMs < 0.5 * ttlMs ? givenMs : ttlMs);
    }
  }

  private holdUntil(): number {
    return this.grantedAt + this.wish.maxHoldMs;
  }

  private believedUntil(): number {
    return Math.min(this.company?.validUntil ?? this.validUntil, this.holdUntil());
  }

  private stillValid(now: number): boolean {
    if (now < this.believedUntil()) return true;
    this.lose(now < this.holdUntil() ? "expired" : "max-hold");
    return false;
  }

  private lose(why: LossCause): void {
    if (this.state === "granted") {
      this.stop(report.errorOf(this, "LOCK_LOST", "it was granted, and lost before the caller's turn came"));
      return;
    }
    this.lossCause = why;
    this.end();
    report.reportLoss(this, why, this.client.clock.now() - this.grantedAt);
    this.onLost?.();
    this.claimant.lost?.(this, why);
  }

  // Leaving.

  /** Takes our entry out, once. Null if how that ended is told later. */
  leave(told: Released): "released" | "gone" | null {
    this.hasLeft = true;
    const heir = this.state === "held" && this.client.behind.size > 0 ? this.findHeir() : null;
    this.end();
    this.heir = heir?.id ?? null;
    const left = takeOut(this, this.grantedAt, told);
    heir?.inherit(this);
    return left;
  }

  /**
   * Who holds next, if that is sure without the store. We hold alone, so nobody is ahead of us; nobody can have come between us and
   * the one that saw us as the nearest; and its entry lives for as long as it may be believed.
   */
  private findHeir(): Claim | null {
    const heir = this.client.behind.get(this.id);
    if (heir === undefined || this.rule !== exclusive) return null;
    return (this.wait?.handOvers ?? 0) < mostHandOvers && heir.mayInherit(this.seq) ? heir : null;
  }

  /** Not from one that has joined again since we saw it. */
  private mayInherit(seq: bigint): boolean {
    if (this.state !== "waiting" || this.waiting().asking) return false;
    return this.waiting().seenNearest?.seq === seq && this.client.clock.now() < this.validUntil;
  }

  private inherit(from: Claim): void {
    this.waiting().handOvers = (from.wait?.handOvers ?? 0) + 1;
    this.grant(this.client.clock.recent());
  }

  /** Ends it because the client closes; resolves when nothing of it is under way any more. */
  close(): Promise<void> {
    const asking = this.wait?.asking === true;
    if (this.state === "held") {
      this.lose("closed");
      this.giveBack();
    } else {
      this.stop(report.errorOf(this, "LOCK_CLOSED", "the LockManager was closed"));
    }
    if (!asking) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiting().onAnswer = resolve;
    });
  }

  /** Ends a request that is not yet entered. What is in the store is given back; what is under way, when it arrives. */
  private stop(error: unknown): void {
    if (this.state !== "waiting" && this.state !== "granted") return;
    const asking = this.wait?.asking === true;
    this.end();
    report.reportCancel(this, error, this.client.clock.recent() - this.startedAt);
    this.claimant.failed(error);
    if (!asking && this.mayBeThere()) this.giveBack();
  }

  /** An append may have reached the store without our hearing of it. */
  get doubtful(): boolean {
    return this.wait?.mayBeThere === true;
  }

  private mayBeThere(): boolean {
    return this.joined || this.doubtful;
  }

  private end(): void {
    this.state = "ended";
    this.wait?.endWatch();
    this.standAlone();
    this.wait?.passOn();
    this.unlisten();
    this.client.keeper.drop(this);
  }

  private giveBack(): void {
    this.client.keeper.discard(this.queue, this.id, this.wish.ttlMs);
  }

  private unlisten(): void {
    if (this.wait === null) return;
    this.wait.endListening?.();
    this.wait.endListening = null;
  }
}

function modeOf(wish: Wish): EntryMode {
  return wish.mode === "shared" ? "read" : "write";
}

function isDue(moment: number | null, now: number): boolean {
  return moment !== null && now >= moment;
}
