/**
 * Sends the calls of one tick as one script call, each with a deadline of its own: what cannot be sent waits until then
 * and no longer, what is not answered by then counts as unknown. It leaves the meaning of calls to the backend.
 */
import { afterReading, type Clock, type Timer } from "../../core/clock.ts";
import { Batch, type Confirmation, lackOf, type Taker } from "./batch.ts";
import type { Call } from "./calls.ts";
import {
  closed,
  failureOf,
  isMoving,
  isScriptMissing,
  isUnsent,
  notAnswered,
  notConnected,
  notReplicated,
  sentFailure,
} from "./failures.ts";
import type { PlacedKeys } from "./keys.ts";
import type { Link } from "./link.ts";
import { digest, type Phrase } from "./phrases.ts";
import { failureIn, readReply, type Reply } from "./replies.ts";
import { callsScript } from "./scripts.ts";
import type { ServerClocks } from "./server-clock.ts";

/**
 * How much work a script call has when nothing more is added to it, 64 appends or as much of short runs of renewals: while the server works
 * on one batch, we prepare the next, and nobody else waits for longer than a millisecond or so.
 */
const mostWork = 320;

/** How often a cluster is asked where a slot is whose node takes nothing, in milliseconds. */
const seekEveryMs = 250;

/** After how long a call is tried again that names keys of a slot of which some have moved already, in milliseconds. */
const movingMs = 50;

/** How many calls may wait for a connection. */
const mostWaiting = 250_000;

/** The calls of one client. */
export class Outbox {
  readonly #serverClocks: ServerClocks;
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #confirmation: Confirmation | null;
  readonly #listening: () => number;
  /** The batches that calls of this tick are added to, by slot; all in slot 0 but on a cluster. Made anew each time, for the reason below. */
  #open = new Map<number, Batch>();
  /** What waits for a connection, in order. */
  #waiting: Batch[] = [];
  #waitingCalls = 0;
  /** In the order in which they were sent. No Set: one that comes and goes leaves tables behind that keep what was in them alive for long. */
  readonly #sent: Batch[] = [];
  /** Batches that found the script missing; nothing else is sent until they have been sent again. */
  #missed: Batch[] = [];
  #flushing = false;
  /** How many calls this tick has had so far, runs of renewals left out, and whether the last tick that had any had only one. */
  #added = 0;
  #sparse = false;
  /** Whether the last answer was that of a call that travelled alone, with nothing else under way. */
  #lonely = false;
  readonly #flush = (): void => this.flush();
  #held = true;
  /** Until when calls of some slot are held back; 0 if none are. */
  #movingUntil = 0;
  #closed = false;
  #timer: Timer | null = null;
  #seeking: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #lastAnswerAt: number = Number.NEGATIVE_INFINITY;
  #gaveUpAt: number = Number.NEGATIVE_INFINITY;

  constructor(
    link: Link,
    clock: Clock,
    deadlineMs: number,
    confirmation: Confirmation | null,
    serverClocks: ServerClocks,
    listening: () => number,
  ) {
    this.#link = link;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    this.#confirmation = confirmation;
    this.#serverClocks = serverClocks;
    this.#listening = listening;
  }

  /** Lets calls go; they are held until this is called for the first time. */
  release(): void {
    this.#held = false;
    this.flush();
  }

  /** Adds a call to the batch of this tick; an append says what its entry has in common with others. */
  add(keys: PlacedKeys, call: Call, taker: Taker, common: string | null = null): void {
    if (this.#closed) return taker.fail(closed());
    // Calls that come one by one gain nothing by waiting for the end of the tick: where the last tick had a single one, the first of
    // this one is sent as it comes. Should there be more, they travel together. Where each waits for the one before, ticks need not
    // be told apart at all.
    const lonely = this.#lonely;
    this.#lonely = false;
    if (!lonely) this.#added += 1;
    const comesAlone = lonely || (this.#added === 1 && this.#sparse);
    if (comesAlone && this.#open.size === 0 && this.#goesNow(keys.queue)) {
      const now = this.#clock.now();
      const batch = new Batch(keys.queue, keys.slot, now + this.#deadlineMs);
      batch.common = common;
      batch.add(keys, call, taker);
      this.#send(batch, false, now);
      if (!lonely) this.#flushSoon();
      return;
    }
    this.addLater(keys, call, taker, common);
  }

  /** The same for a call that nobody waits for: it is sent at the end of the tick at the soonest. */
  addLater(keys: PlacedKeys, call: Call, taker: Taker, common: string | null = null): void {
    if (this.#closed) return taker.fail(closed());
    const batch = this.#batchFor(keys.queue, keys.slot, common);
    batch.common ??= common;
    batch.add(keys, call, taker);
    // Nothing more is added to it: the server works on it while we prepare the next.
    if (batch.work >= mostWork && this.#goesNow(batch.key)) {
      this.#open.delete(batch.slot);
      this.#send(batch, false);
    }
  }

  /** Whether what is sent now overtakes nothing. */
  #goesNow(key: string): boolean {
    const overtakes = this.#waiting.length > 0 || this.#missed.length > 0;
    return !this.#held && !overtakes && this.#link.canSend(key);
  }

  /** Adds a call about many queues of one slot; `queues` are their keys. */
  addRun(slot: number, queues: readonly string[], call: Call, taker: Taker): void {
    if (this.#closed) return taker.fail(closed());
    this.#batchFor(queues[0] ?? "", slot, null).addRun(queues, call, taker);
  }

  /** Sends a call about many queues by itself, in the words that it has. */
  addPhrase(phrase: Phrase, taker: Taker): void {
    if (this.#closed) return taker.fail(closed());
    const { key, slot } = phrase;
    const open = this.#open.get(slot);
    if (open !== undefined) this.#close(slot, open);
    const batch = this.#newBatch(key, slot, phrase);
    batch.takers.push(taker);
    this.#close(slot, batch);
    this.#flushSoon();
  }

  #batchFor(key: string, slot: number, common: string | null): Batch {
    const open = this.#open.get(slot);
    if (open !== undefined && open.work < mostWork && open.takes(common)) return open;
    if (open !== undefined) this.#close(slot, open);
    const batch = this.#newBatch(key, slot);
    this.#open.set(slot, batch);
    this.#flushSoon();
    return batch;
  }

  #newBatch(key: string, slot: number, phrase: Phrase | null = null): Batch {
    return new Batch(key, slot, this.#clock.now() + this.#deadlineMs, phrase);
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    process.nextTick(this.#flush);
  }

  #close(slot: number, batch: Batch): void {
    this.#open.delete(slot);
    this.#waiting.push(batch);
    this.#waitingCalls += batch.takers.length;
  }

  /** Sends all that has been added, if it can be sent now. */
  flush(): void {
    this.#flushing = false;
    if (this.#added > 0) this.#sparse = this.#added === 1;
    this.#added = 0;
    if (this.#open.size > 0) {
      for (const [slot, batch] of this.#open) this.#close(slot, batch);
      this.#open = new Map();
    }
    if (this.#waiting.length === 0) return;
    if (this.#held || this.#missed.length > 0 || !this.#link.isReady) {
      if (this.#waitingCalls > mostWaiting) this.#failWaiting();
    } else {
      const batches = this.#waiting;
      this.#waiting = [];
      this.#waitingCalls = 0;
      const moving = this.#movingSlots(batches);
      for (const batch of batches) {
        if (moving?.has(batch.slot) !== true && this.#link.canSend(batch.key)) this.#send(batch, false);
        else this.#keep(batch);
      }
    }
    for (const { dueAt } of this.#waiting) this.#wakeAt(dueAt);
  }

  /** The slots whose calls are held back until the first of them is tried again; null, as nearly always, if there is none. */
  #movingSlots(batches: readonly Batch[]): ReadonlySet<number> | null {
    if (this.#movingUntil === 0) return null;
    const now = this.#clock.now();
    if (now >= this.#movingUntil) this.#movingUntil = 0;
    return new Set(batches.filter(({ notBefore }) => notBefore > now).map(({ slot }) => slot));
  }

  /** Keeps a batch until its slot may have moved, and with it, so that calls keep their order, those of that slot that come later. */
  #keepWhileMoving(batch: Batch, error: unknown): void {
    batch.refusal = sentFailure(error);
    batch.notBefore = this.#movingUntil = this.#clock.now() + movingMs;
    this.#keep(batch);
    this.#wakeAt(batch.dueAt);
    this.#clock.after(movingMs, this.#flush);
  }

  /** Keeps what cannot be sent now. */
  #keep(batch: Batch): void {
    const place = this.#waiting.findIndex(({ serial }) => serial > batch.serial);
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, batch);
    this.#waitingCalls += batch.takers.length;
    this.#seek();
  }

  /** Asks where the slots are of what cannot be sent, now and then, and tries again. */
  #seek(): void {
    this.#seeking ??= this.#clock.after(seekEveryMs, () => {
      this.#seeking = null;
      for (const slot of new Set(this.#waiting.map((batch) => batch.slot))) this.#link.seek(slot);
      this.flush();
    });
  }

  #failWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingCalls = 0;
    for (const batch of waiting) batch.fail(notConnected(this.#deadlineMs, this.#link.lastError));
  }

  #send(batch: Batch, withText: boolean, now: number = this.#clock.now()): void {
    if (batch.over) return;
    const { key, phrase } = batch;
    batch.sentAt = now;
    batch.listening = this.#listening();
    const words = phrase?.words ?? this.#wordsOf(batch);
    const answer = withText
      ? this.#link.send("EVAL", [callsScript, ...words.slice(1)], key)
      : this.#link.send("EVALSHA", words, key, phrase?.kept);
    this.#sent.push(batch);
    this.#wakeAt(batch.dueAt);
    const confirmed = this.#confirm(batch);
    answer.then(
      (reply) => this.#answered(batch, reply, confirmed),
      (error: unknown) => this.#failed(batch, error),
    );
  }

  /** It is not waited for any more. Most are answered in the order in which they were sent. */
  #ended(batch: Batch): void {
    if (this.#sent[0] === batch) {
      this.#sent.shift();
      return;
    }
    const place = this.#sent.indexOf(batch);
    if (place >= 0) this.#sent.splice(place, 1);
  }

  #wordsOf(batch: Batch): readonly string[] {
    const { keys, common, slot, dueAt } = batch;
    // Only an append can come too late, and has something in common with others.
    const words = batch.words(common === null ? null : this.#serverClocks.at(slot, dueAt));
    return [digest, String(keys.length)].concat(keys, words);
  }

  #answered(batch: Batch, reply: unknown, confirmed: Promise<string | null> | null): void {
    const now = this.#clock.now();
    this.#lastAnswerAt = now;
    this.#ended(batch);
    this.#lonely = batch.takers.length === 1 && this.#sent.length === 0;
    this.#sendMissed();
    const read = readReply(batch.texts, reply);
    if (read === null) return batch.fail(failureOf(`an answer that is no list: ${typeof reply}`));
    const { nowUs } = read;
    if (nowUs > 0) this.#serverClocks.learn(batch.slot, nowUs / 1000, batch.sentAt, now);
    if (batch.over) return;
    if (confirmed === null) return this.#give(batch, read, null);
    void confirmed.then((lack) => this.#give(batch, read, lack));
  }

  /** Gives each taker its answer. */
  #give(batch: Batch, { answers, from, nowUs }: Reply, lack: string | null): void {
    if (batch.over) return;
    batch.over = true;
    batch.takers.forEach((taker, index) => {
      const answer = answers[index + from];
      const failure = failureIn(answer);
      if (failure !== null) this.#refused(batch, index, failure);
      else if (lack === null || taker.undo === undefined) taker.take(answer, nowUs, batch.listening);
      else {
        taker.undo();
        taker.fail(notReplicated(lack));
      }
    });
  }

  #refused(batch: Batch, index: number, text: string): void {
    const taker = batch.takers[index];
    if (taker === undefined) return;
    // The server's clock has stepped: what it is now has just been learnt.
    if (text === "LATE" && !batch.again && this.#clock.now() < batch.dueAt) {
      return this.#send(batch.onlyAppend(index), false);
    }
    if (text.startsWith("READONLY")) this.#giveUp(batch);
    taker.fail(failureOf(text));
  }

  #failed(batch: Batch, error: unknown): void {
    this.#ended(batch);
    if (isScriptMissing(error) && !batch.over) {
      this.#missed.push(batch);
      return this.#sendMissed();
    }
    this.#sendMissed();
    if (isMoving(error) && !batch.over) return this.#keepWhileMoving(batch, error);
    // On a cluster, the connection to one node may end in between.
    if (isUnsent(error) && !batch.over) {
      this.#keep(batch);
      return this.#wakeAt(batch.dueAt);
    }
    const failure = sentFailure(error);
    if (failure.message.includes("READONLY")) this.#giveUp(batch);
    batch.fail(failure);
  }

  /** Gives up the connection that a batch went by; once, however many went by it. */
  #giveUp({ sentAt }: Batch): void {
    if (sentAt <= this.#gaveUpAt) return;
    this.#gaveUpAt = this.#clock.now();
    this.#link.reconnect();
  }

  /** Once all that was sent has come back, sends what found the script missing again, so that calls keep their order. */
  #sendMissed(): void {
    if (this.#missed.length === 0 || this.#sent.length > 0) return;
    const missed = this.#missed;
    this.#missed = [];
    for (const batch of missed) this.#send(batch, true);
    this.flush();
  }

  /** Asks replicas or the disk to confirm what was just sent: null if they did, else what they said. */
  #confirm(batch: Batch): Promise<string | null> | null {
    const policy = this.#confirmation;
    if (policy === null || batch.takers.every((taker) => taker.undo === undefined)) return null;
    const { replicas, aof, withinMs } = policy;
    const [command, args] =
      aof > 0 ? (["WAITAOF", [aof, replicas, withinMs]] as const) : (["WAIT", [replicas, withinMs]] as const);
    return this.#link.send(command, args.map(String), batch.key).then(
      (answer) => lackOf(answer, policy),
      (error: unknown) =>
        `the server did not confirm it: ${error instanceof Error ? error.message : String(error)}`,
    );
  }

  // One timer for all deadlines: they come in the order in which calls were made, but for some that are sent again.

  #wakeAt(moment: number): void {
    if (moment >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = moment;
    this.#timer = afterReading(this.#clock, moment - this.#clock.now(), (readUpTo) => this.#expire(readUpTo));
  }

  #expire(readUpTo: number): void {
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const waited = this.#waiting.filter(({ dueAt }) => dueAt <= readUpTo);
    this.#waiting = this.#waiting.filter(({ dueAt }) => dueAt > readUpTo);
    this.#waitingCalls = this.#waiting.reduce((sum, { takers }) => sum + takers.length, 0);
    if (waited.length > 0 && !this.#link.isReady) this.#link.reconnect();
    for (const batch of waited) {
      batch.fail(batch.refusal ?? notConnected(this.#deadlineMs, this.#link.lastError));
    }
    for (const batch of [...this.#sent, ...this.#missed]) {
      if (batch.dueAt > readUpTo) continue;
      this.#ended(batch);
      this.#missed = this.#missed.filter((missed) => missed !== batch);
      // Nothing has come since it was sent: the connection may be dead without knowing it.
      if (this.#lastAnswerAt < batch.sentAt) this.#giveUp(batch);
      // Only its node may be.
      else if (this.#link.cluster) this.#link.seek(batch.slot);
      batch.fail(notAnswered(this.#deadlineMs));
    }
    this.#sendMissed();
    for (const { dueAt } of [...this.#waiting, ...this.#sent]) this.#wakeAt(dueAt);
  }

  /** Fails all that is under way. */
  close(): void {
    this.#closed = true;
    this.#seeking?.cancel();
    this.#timer?.cancel();
    this.#timer = null;
    const all = [...this.#sent, ...this.#missed, ...this.#waiting, ...this.#open.values()];
    this.#sent.length = 0;
    this.#open.clear();
    this.#missed = [];
    this.#waiting = [];
    for (const batch of all) batch.fail(closed());
  }
}
