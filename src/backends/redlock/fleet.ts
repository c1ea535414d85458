/** All nodes as one: calls of one tick go to each of them together, under one deadline. It decides nothing. */
import { afterReading, type Clock, type Timer } from "../../core/clock.ts";
import { LockError } from "../../core/errors.ts";
import { Batch, type Poll } from "./batch.ts";
import type { CallName } from "./calls.ts";
import { sentFailure } from "../redis/failures.ts";
import { closed, type NodeFailure, tooFew } from "./failures.ts";
import type { Node } from "./node.ts";
import { connectMs } from "./outgoing.ts";
import { Tally, type Vote } from "./quorum.ts";
import type { Short } from "./short.ts";

/** How long closing waits for answers that nobody waits for any more, in milliseconds. */
const lingerMs = 200;

/** The nodes of one client. */
export class Fleet {
  readonly nodes: readonly Node[];
  /** How long a node has for an answer, in milliseconds. */
  readonly deadlineMs: number;
  readonly #clock: Clock;
  #open: Batch | null = null;
  #flushing = false;
  /** What is under way, in the order of its deadlines. */
  readonly #due = new Set<Batch>();
  #timer: Timer | null = null;
  #started = false;
  /** Whether a majority has been connected once. */
  #wasReady = false;
  #closed = false;
  #onIdle: (() => void) | null = null;

  constructor(nodes: readonly Node[], clock: Clock, deadlineMs: number) {
    this.nodes = nodes;
    this.#clock = clock;
    this.deadlineMs = deadlineMs;
  }

  /** Begins to connect, unless that has begun. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    for (const node of this.nodes) node.start();
  }

  /** Null if a majority has been connected once; else as `ready`: to connect takes longer than an answer. */
  firstReady(): Promise<void> | null {
    return this.#wasReady ? null : this.ready();
  }

  /** Resolves when a majority is connected. Rejects with LOCK_UNAVAILABLE. */
  ready(): Promise<void> {
    const tally = new Tally(this.nodes.length);
    const failures: NodeFailure[] = [];
    return new Promise((resolve, reject) => {
      const count = (index: number, vote: Vote): void => {
        const verdict = tally.count(index, vote);
        if (verdict === "reached") {
          this.#wasReady = true;
          resolve();
        }
        if (verdict === "impossible") reject(tooFew("LOCK_UNAVAILABLE", failures, tally.nodes, tally.quorum));
      };
      for (const node of this.nodes) {
        node.whenUp(Math.max(connectMs, this.deadlineMs)).then(
          () => count(node.index, "yes"),
          (error: unknown) => {
            failures.push({
              node: node.label,
              error: error instanceof LockError ? error : sentFailure(error),
            });
            count(node.index, "void");
          },
        );
      }
    });
  }

  /** Adds a call to what this tick sends to all nodes. */
  call(name: CallName, keys: readonly string[], args: readonly string[], poll: Poll, short?: Short): void {
    if (this.#closed) return this.nodes.forEach(({ index }) => poll.failed(index, closed()));
    if (this.#open?.isFull) this.#send(this.#open);
    this.#open ??= new Batch(this.nodes.length, this.#clock.now() + this.deadlineMs);
    this.#open.add(name, keys, args, poll, short);
    if (this.#flushing) return;
    this.#flushing = true;
    process.nextTick(() => {
      this.#flushing = false;
      if (this.#open !== null) this.#send(this.#open);
    });
  }

  /** Sends a call to one node, after what it was sent before. */
  callOne(node: Node, name: CallName, keys: readonly string[], args: readonly string[], poll: Poll): void {
    if (this.#closed) return poll.failed(node.index, closed());
    if (this.#open !== null) this.#send(this.#open);
    const batch = new Batch(this.nodes.length, this.#clock.now() + this.deadlineMs, node.index);
    batch.add(name, keys, args, poll);
    this.#track(batch);
    node.send(batch);
  }

  #send(batch: Batch): void {
    this.#open = null;
    this.#track(batch);
    for (const node of this.nodes) node.send(batch);
  }

  /** A node that lags behind a decision is to hear of it all the same: of a release, most of all. */
  async #linger(): Promise<void> {
    if (this.#due.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(Math.min(lingerMs, this.deadlineMs), resolve);
      this.#onIdle = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  // One timer for all deadlines: they are all equally long.

  #track(batch: Batch): void {
    this.#due.add(batch);
    batch.onOver = () => {
      this.#due.delete(batch);
      if (this.#due.size === 0) this.#onIdle?.();
    };
    this.#timer ??= afterReading(this.#clock, this.deadlineMs, this.#expire);
  }

  readonly #expire = (readUpTo: number): void => {
    this.#timer = null;
    const due = [...this.#due].filter(({ dueAt }) => dueAt <= readUpTo);
    for (const batch of due) for (const node of this.nodes) node.expire(batch);
    const [next] = this.#due;
    if (next !== undefined && !this.#closed)
      this.#timer ??= afterReading(this.#clock, next.dueAt - this.#clock.now(), this.#expire);
  };

  /** Waits a little for what is under way, fails the rest, and ends the connections that are ours. */
  async close(): Promise<void> {
    if (this.#closed) return;
    if (this.#open !== null) this.#send(this.#open);
    this.#closed = true;
    await this.#linger();
    this.#timer?.cancel();
    this.#timer = null;
    this.#due.clear();
    await Promise.all(this.nodes.map((node) => node.close(closed())));
  }
}
