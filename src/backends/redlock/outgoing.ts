/**
 * What one client has under way at one node: batches in their order, over a connection that was let in, and what is owed to it.
 * What answers mean is left to the polls, which deadline they have to the fleet, and who is there to node.ts.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { LockError } from "../../core/errors.ts";
import { failureOf, isScriptMissing, notAnswered, notConnected, sentFailure } from "../redis/failures.ts";
import { asText, type Link } from "../redis/link.ts";
import type { ServerClock } from "../redis/server-clock.ts";
import { Batch } from "./batch.ts";
import { Debts } from "./debts.ts";
import { callsScript } from "./scripts.ts";
import type { Short } from "./short.ts";

const digest: string = createHash("sha1").update(callsScript).digest("hex");

/** How long connecting may take at the least, in milliseconds: a server that is far away needs its time. */
export const connectMs = 3_000;

/** How often it is learnt what the clock of the server says, in milliseconds. */
const learnMs = 50;

/** Where batches go to. */
export interface Destination {
  readonly index: number;
  readonly link: Link;
  readonly serverClock: ServerClock;
  /** Whether batches can be sent now. */
  readonly isUp: boolean;
  /** The server has forgotten the scripts. */
  reload(): void;
}

/** The batches that are on their way to a node. */
export class Outgoing {
  readonly #node: Destination;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #debts: Debts;
  /** What waits until the node is let in, in order. */
  #held: Batch[] = [];
  /** What was sent and has neither been answered nor failed, and how many answers had come before: its connection still works on it. */
  readonly #sent = new Map<Batch, number>();
  /** What the server did not begin: sent again when all else is back, so that calls keep their order. */
  #missed: Batch[] = [];
  /** How many answers have come. */
  #answers = 0;
  /** Since when the present connection is tried, or stands. */
  #connectionSince: number;
  /** When what the clock of the server says was last learnt. */
  #learntAt: number = Number.NEGATIVE_INFINITY;

  constructor(node: Destination, clock: Clock, deadlineMs: number) {
    this.#node = node;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    this.#debts = new Debts(clock);
    this.#connectionSince = clock.now();
  }

  /** The connection is lost, and another one is tried. */
  lost(): void {
    this.#connectionSince = this.#clock.now();
  }

  /** Sends what is owed. */
  payDebts(): void {
    const debts = this.#debts.take();
    if (debts.length === 0) return;
    const batch = new Batch(1, this.#clock.now() + this.#deadlineMs, this.#node.index);
    for (const owed of debts) {
      const poll = { owed, answered: () => {}, failed: () => {} };
      batch.add("remove", [owed.key], [owed.id, owed.seq, "1"], poll);
    }
    this.#send(batch, false);
  }

  /** Sends a batch now, or as soon as the node is let in. */
  send(batch: Batch): void {
    if (this.#held.length === 0 && this.#missed.length === 0 && this.#node.isUp)
      return this.#send(batch, false);
    this.#held.push(batch);
    this.flush();
  }

  /** Sends what is held, if it can be sent now. */
  flush(): void {
    if (!this.#node.isUp || this.#missed.length > 0) return;
    const held = this.#held;
    this.#held = [];
    for (const batch of held) this.#send(batch, false);
  }

  #send(batch: Batch, inFull: boolean): void {
    if (batch.isHeard(this.#node.index)) return;
    const sentAt = this.#clock.recent();
    if (batch.short !== null && !inFull) return this.#sendShort(batch, batch.short, sentAt);
    const until = this.#node.serverClock.at(batch.dueAt) ?? 0;
    const script = inFull ? callsScript : digest;
    const { keys, letters, args } = batch;
    const words = [script, String(keys.length), ...keys, String(until), letters, ...args];
    this.#sent.set(batch, this.#answers);
    this.#node.link.send(inFull ? "EVAL" : "EVALSHA", words).then(
      (reply) => this.#answered(batch, reply, sentAt),
      (error: unknown) => this.#failed(batch, error),
    );
  }

  #sendShort(batch: Batch, short: Short, sentAt: number): void {
    this.#sent.set(batch, this.#answers);
    this.#node.link.send(short.command, short.words).then(
      (reply) => {
        if (short.read === null) return this.#answered(batch, reply, sentAt);
        const answer = short.read(reply, this.#node.link);
        if (!(answer instanceof Promise)) return this.#answeredShort(batch, answer);
        answer.then(
          (later) => this.#answeredShort(batch, later),
          (error: unknown) => this.#failed(batch, error),
        );
      },
      (error: unknown) => this.#failed(batch, error),
    );
  }

  #answeredShort(batch: Batch, answer: string | null): void {
    this.#sent.delete(batch);
    this.#answers += 1;
    if (answer === null) this.#missed.push(batch);
    else this.#take(batch, [answer]);
    this.#sendMissed();
  }

  #take(batch: Batch, answers: readonly unknown[]): void {
    // What was owed since nobody heard it is done after all.
    for (const { owed } of batch.polls) if (owed !== undefined) this.#debts.settle(owed);
    batch.take(this.#node.index, answers, (text) => failureOf(text));
  }

  #answered(batch: Batch, reply: unknown, sentAt: number): void {
    this.#sent.delete(batch);
    this.#answers += 1;
    const [time, ...answers]: unknown[] = Array.isArray(reply) ? reply : [];
    const isLate = asText(answers[0]) === "!LATE";
    // To read the clock at each answer costs a turn of the event loop each.
    if (isLate || sentAt - this.#learntAt >= learnMs) {
      this.#learntAt = this.#clock.now();
      this.#node.serverClock.learn(Number(asText(time)) / 1000, sentAt, this.#learntAt);
    }
    if (isLate) this.#late(batch, this.#learntAt);
    else this.#take(batch, answers);
    this.#sendMissed();
  }

  /** Late by the node's clock only: that has stepped, and what it is now has just been learnt. */
  #late(batch: Batch, now: number): void {
    if (now < batch.dueAt) return void this.#missed.push(batch);
    this.#fail(batch, failureOf("LATE"));
    this.payDebts();
  }

  #failed(batch: Batch, error: unknown): void {
    this.#sent.delete(batch);
    if (isScriptMissing(error)) {
      // The first to notice it has them loaded again: it is then sent in full after that.
      if (this.#missed.length === 0) this.#node.reload();
      this.#missed.push(batch);
    } else this.#fail(batch, sentFailure(error));
    this.#sendMissed();
  }

  #sendMissed(): void {
    if (this.#missed.length === 0 || this.#sent.size > 0) return;
    const missed = this.#missed;
    this.#missed = [];
    for (const batch of missed)
      if (this.#node.isUp && !batch.isPast) this.#send(batch, true);
      else this.#fail(batch, notConnected(this.#deadlineMs, this.#node.link.lastError));
    this.flush();
  }

  /** The deadline of a batch has passed. */
  expire(batch: Batch): void {
    if (batch.isHeard(this.#node.index)) return;
    const before = this.#sent.get(batch);
    if (before === undefined) {
      this.#held = this.#held.filter((held) => held !== batch);
      this.#missed = this.#missed.filter((missed) => missed !== batch);
      // One that hangs while it connects would do so for ever; one that is only slow would never be done if it were not left to.
      const sinceMs = this.#clock.now() - this.#connectionSince;
      if (!this.#node.link.isReady && sinceMs >= Math.max(connectMs, this.#deadlineMs)) this.#reconnect();
      return this.#fail(batch, notConnected(this.#deadlineMs, this.#node.link.lastError));
    }
    // Nothing has come since it was sent: the connection may be dead without knowing it.
    if (this.#answers === before && this.#node.link.isReady) this.#reconnect();
    this.#fail(batch, notAnswered(this.#deadlineMs));
  }

  #reconnect(): void {
    this.lost();
    this.#node.link.reconnect();
  }

  #fail(batch: Batch, error: LockError): void {
    if (batch.isHeard(this.#node.index)) return;
    for (const { owed } of batch.polls) if (owed !== undefined) this.#debts.owe(owed);
    batch.fail(this.#node.index, error);
  }

  /** Fails what waits for a node that cannot be let in. */
  failHeld(error: LockError): void {
    for (const batch of this.#held.splice(0)) this.#fail(batch, error);
  }

  close(error: LockError): void {
    for (const batch of [...this.#held, ...this.#sent.keys(), ...this.#missed])
      batch.fail(this.#node.index, error);
    this.#held = [];
    this.#missed = [];
    this.#sent.clear();
  }
}
