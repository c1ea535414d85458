/**
 * One server of a fleet, as one client sees it: sends batches in order, over a connection that was let in, and keeps what
 * it owes; what answers mean is left to the polls, and which deadline they have to the fleet.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { LockError } from "../../core/errors.ts";
import { failureOf, isScriptMissing, notAnswered, notConnected, sentFailure } from "../redis/failures.ts";
import { asText, type Link } from "../redis/link.ts";
import { ServerClock } from "../redis/server-clock.ts";
import { Admission, identify } from "./admission.ts";
import { Batch } from "./batch.ts";
import { Debts } from "./debts.ts";
import { callsScript } from "./scripts.ts";
import { type Short, shortScripts } from "./short.ts";

const digest: string = createHash("sha1").update(callsScript).digest("hex");

/** How long to wait until a server is asked again who it is that did not say, in milliseconds. */
const admissionPauseMs = 200;

/** How often it is learnt what the clock of the server says, in milliseconds. */
const learnMs = 50;

/** How a node is set up. */
export interface NodeSettings {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly quarantineMs: number;
}

/** A server among others. */
export class Node {
  readonly index: number;
  readonly label: string;
  readonly link: Link;
  readonly serverClock: ServerClock = new ServerClock();
  readonly #nodes: number;
  readonly #settings: NodeSettings;
  readonly #admission: Admission;
  readonly #debts: Debts;
  /** What waits until the node is let in, in order. */
  #held: Batch[] = [];
  /** What was sent and has neither been answered nor failed, and how many answers had come before: its connection still works on it. */
  readonly #sent = new Map<Batch, number>();
  /** What the server did not begin: sent again when all else is back, so that calls keep their order. */
  #missed: Batch[] = [];
  #admitted = false;
  #mayLoad = true;
  /** Counts connections, so that an answer about an earlier one is known. */
  #connection = 0;
  /** How many answers have come. */
  #answers = 0;
  /** When what the clock of the server says was last learnt. */
  #learntAt: number = Number.NEGATIVE_INFINITY;
  #waiting: Array<() => void> = [];
  #closed = false;

  constructor(index: number, nodes: number, label: string, link: Link, settings: NodeSettings) {
    this.index = index;
    this.label = label;
    this.link = link;
    this.#nodes = nodes;
    this.#settings = settings;
    this.#admission = new Admission(settings.clock, settings.quarantineMs);
    this.#debts = new Debts(settings.clock);
  }

  /** Begins to connect. */
  start(): void {
    this.link.start(
      () => this.#connected(),
      () => this.#lost(),
    );
    if (this.link.isReady && this.#connection === 0) this.#connected();
  }

  /** Whether batches can be sent now. */
  get isUp(): boolean {
    return this.#admitted && this.link.isReady;
  }

  /** Resolves when it has been let in. Rejects with LOCK_UNAVAILABLE if it is not within so many milliseconds. */
  whenUp(ms: number): Promise<void> {
    if (this.isUp) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = this.#settings.clock.after(ms, () => reject(notConnected(ms, this.link.lastError)));
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** Why its votes do not count now, though it answers; null if they do. */
  get voidBecause(): LockError | null {
    return this.#admission.voidBecause;
  }

  #lost(): void {
    this.#admission.lost();
    this.#admitted = false;
    this.#connection += 1;
  }

  /** Nothing is sent on a new connection until it is known whose it is. */
  #connected(): void {
    this.#admitted = false;
    const connection = ++this.#connection;
    void this.#admit(connection).catch((error: unknown) => {
      if (connection !== this.#connection || this.#closed) return;
      for (const batch of this.#held.splice(0)) this.#fail(batch, sentFailure(error));
      this.#settings.clock.after(admissionPauseMs, () => {
        if (connection === this.#connection && !this.#closed && this.link.isReady) this.#connected();
      });
    });
  }

  async #admit(connection: number): Promise<void> {
    const { clock } = this.#settings;
    this.#mayLoad = true;
    const loaded = this.#load();
    const askedAt = clock.now();
    const [identity] = await Promise.all([identify(this.link), loaded]);
    if (connection !== this.#connection || this.#closed) return;
    if (identity.wallMs !== null) this.serverClock.learn(identity.wallMs, askedAt, clock.now());
    this.#admission.learn(identity);
    this.#admitted = true;
    this.#payDebts();
    this.flush();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** A user that may not load scripts sends their text when it is asked for. */
  async #load(): Promise<void> {
    const scripts = [callsScript, ...shortScripts];
    const refused = (): void => {
      this.#mayLoad = false;
    };
    await Promise.all(scripts.map((script) => this.link.send("SCRIPT", ["LOAD", script]).catch(refused)));
  }

  #payDebts(): void {
    const debts = this.#debts.take();
    if (debts.length === 0) return;
    const batch = new Batch(this.#nodes, this.#settings.clock.now() + this.#settings.deadlineMs, this.index);
    for (const owed of debts) {
      const poll = { owed, answered: () => {}, failed: () => {} };
      batch.add("remove", [owed.key], [owed.id, owed.seq, "1"], poll);
    }
    this.#send(batch, false);
  }

  /** Sends a batch now, or as soon as the node is let in. */
  send(batch: Batch): void {
    if (this.#held.length === 0 && this.#missed.length === 0 && this.isUp) return this.#send(batch, false);
    this.#held.push(batch);
    this.flush();
  }

  /** Sends what is held, if it can be sent now. */
  flush(): void {
    if (!this.isUp || this.#missed.length > 0) return;
    const held = this.#held;
    this.#held = [];
    for (const batch of held) this.#send(batch, false);
  }

  #send(batch: Batch, inFull: boolean): void {
    if (batch.isHeard(this.index)) return;
    const sentAt = this.#settings.clock.recent();
    if (batch.short !== null && !inFull) return this.#sendShort(batch, batch.short, sentAt);
    const until = this.serverClock.at(batch.dueAt) ?? 0;
    const script = inFull ? callsScript : digest;
    const { keys, letters, args } = batch;
    const words = [script, String(keys.length), ...keys, String(until), letters, ...args];
    this.#sent.set(batch, this.#answers);
    this.link.send(inFull ? "EVAL" : "EVALSHA", words).then(
      (reply) => this.#answered(batch, reply, sentAt),
      (error: unknown) => this.#failed(batch, error),
    );
  }

  #sendShort(batch: Batch, short: Short, sentAt: number): void {
    this.#sent.set(batch, this.#answers);
    this.link.send(short.command, short.words).then(
      (reply) => {
        if (short.read === null) return this.#answered(batch, reply, sentAt);
        const answer = short.read(reply, this.link);
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
    batch.take(this.index, answers, (text) => failureOf(text));
  }

  #answered(batch: Batch, reply: unknown, sentAt: number): void {
    this.#sent.delete(batch);
    this.#answers += 1;
    const [time, ...answers]: unknown[] = Array.isArray(reply) ? reply : [];
    const isLate = asText(answers[0]) === "!LATE";
    // To read the clock at each answer costs a turn of the event loop each.
    if (isLate || sentAt - this.#learntAt >= learnMs) {
      this.#learntAt = this.#settings.clock.now();
      this.serverClock.learn(Number(asText(time)) / 1000, sentAt, this.#learntAt);
    }
    if (isLate) this.#late(batch, this.#learntAt);
    else this.#take(batch, answers);
    this.#sendMissed();
  }

  /** Late by the node's clock only: that has stepped, and what it is now has just been learnt. */
  #late(batch: Batch, now: number): void {
    if (now < batch.dueAt) return void this.#missed.push(batch);
    this.#fail(batch, failureOf("LATE"));
    this.#payDebts();
  }

  #failed(batch: Batch, error: unknown): void {
    this.#sent.delete(batch);
    if (isScriptMissing(error)) {
      // The first to notice it has them loaded again: it is then sent in full after that.
      if (this.#missed.length === 0 && this.#mayLoad) void this.#load();
      this.#missed.push(batch);
    } else this.#fail(batch, sentFailure(error));
    this.#sendMissed();
  }

  #sendMissed(): void {
    if (this.#missed.length === 0 || this.#sent.size > 0) return;
    const missed = this.#missed;
    this.#missed = [];
    for (const batch of missed)
      if (this.isUp && !batch.isPast) this.#send(batch, true);
      else this.#fail(batch, notConnected(this.#settings.deadlineMs, this.link.lastError));
    this.flush();
  }

  /** The deadline of a batch has passed. */
  expire(batch: Batch): void {
    if (batch.isHeard(this.index)) return;
    const before = this.#sent.get(batch);
    if (before === undefined) {
      this.#held = this.#held.filter((held) => held !== batch);
      this.#missed = this.#missed.filter((missed) => missed !== batch);
      // One that hangs while it connects would do so for ever.
      if (!this.link.isReady) this.link.reconnect();
      return this.#fail(batch, notConnected(this.#settings.deadlineMs, this.link.lastError));
    }
    // Nothing has come since it was sent: the connection may be dead without knowing it.
    if (this.#answers === before) this.link.reconnect();
    this.#fail(batch, notAnswered(this.#settings.deadlineMs));
  }

  #fail(batch: Batch, error: LockError): void {
    if (batch.isHeard(this.index)) return;
    for (const { owed } of batch.polls) if (owed !== undefined) this.#debts.owe(owed);
    batch.fail(this.index, error);
  }

  async close(error: LockError): Promise<void> {
    this.#closed = true;
    for (const batch of [...this.#held, ...this.#sent.keys(), ...this.#missed]) batch.fail(this.index, error);
    this.#held = [];
    this.#missed = [];
    this.#sent.clear();
    await this.link.close();
  }
}
