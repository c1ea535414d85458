/** Listens on one of the nodes for releases of the locks that somebody here waits for or holds; whatever is missed is looked up. */
import type { Clock, Random, Timer } from "../../core/clock.ts";
import type { Listening } from "../redis/link.ts";
import { channelOf, keyOfChannel } from "./keys.ts";
import type { Node } from "./node.ts";

/** How long a channel is kept that nobody wants any more: whoever waits once often waits again. */
const lingerMs = 1_000;

/** How often the server is asked whether it still answers, in milliseconds. */
const pingMs = 3_000;

/** Who is told. */
export interface Told {
  /** An entry was taken out of a lock. */
  hint(key: string, id: string): void;
  /** From now on this node tells of a lock; what was before is not told. */
  stands(key: string, node: Node): void;
}

/** Why a channel is wanted. */
export type Reason = "waiting" | "holding";

/** What one client listens for. */
export class Hints {
  readonly #nodes: readonly Node[];
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #told: Told;
  /** Each channel that is wanted, or was a moment ago; true once it stands. */
  readonly #channels = new Map<string, boolean>();
  readonly #wanted: Readonly<Record<Reason, Set<string>>> = { waiting: new Set(), holding: new Set() };
  readonly #unwanted = new Map<string, Timer>();
  #listening: Listening | null = null;
  /** Whom we listen to. */
  #node: Node | null = null;
  #next: number;
  #timer: Timer | null = null;
  #attempts = 0;
  #closed = false;

  constructor(nodes: readonly Node[], clock: Clock, random: Random, told: Told) {
    this.#nodes = nodes;
    this.#clock = clock;
    this.#random = random;
    this.#told = told;
    this.#next = Math.floor(random() * nodes.length);
  }

  /** Wants to be told of releases of a lock. */
  want(key: string, reason: Reason): void {
    this.#wanted[reason].add(key);
    this.#unwanted.get(key)?.cancel();
    this.#unwanted.delete(key);
    if (this.#closed || this.#channels.has(key)) return;
    this.#channels.set(key, false);
    if (this.#listening === null) this.#listen();
    else this.#subscribe(this.#listening, key);
  }

  /** Does not want it any more. */
  unwant(key: string, reason: Reason): void {
    this.#wanted[reason].delete(key);
    if (this.#wanted.waiting.has(key) || this.#wanted.holding.has(key)) return;
    if (!this.#channels.has(key) || this.#unwanted.has(key)) return;
    const timer = this.#clock.after(lingerMs, () => {
      this.#unwanted.delete(key);
      this.#channels.delete(key);
      if (this.#channels.size === 0) this.#end();
      else this.#listening?.unsubscribe(channelOf(key)).catch(() => {});
    });
    this.#unwanted.set(key, timer);
  }

  #listen(): void {
    if (this.#closed || this.#timer !== null || this.#listening !== null || this.#channels.size === 0) return;
    const node = this.#nextNode();
    if (node === null) return this.#later();
    let listening: Listening;
    const down = (): void => {
      if (this.#listening === listening) this.#lost();
    };
    const hear = (id: string, channel: string): void => this.#told.hint(keyOfChannel(channel), id);
    try {
      listening = node.link.listen({ onMessage: hear, onDown: down });
    } catch {
      return this.#later();
    }
    this.#listening = listening;
    this.#node = node;
    for (const key of this.#channels.keys()) this.#subscribe(listening, key);
    this.#watchOver(listening);
  }

  /** Those that are up, in turn. */
  #nextNode(): Node | null {
    for (let step = 0; step < this.#nodes.length; step++) {
      const node = this.#nodes[this.#next++ % this.#nodes.length];
      if (node?.isUp) return node;
    }
    return null;
  }

  #subscribe(listening: Listening, key: string): void {
    listening.subscribe(channelOf(key)).then(
      () => {
        if (this.#listening !== listening || !this.#channels.has(key)) return;
        this.#attempts = 0;
        this.#channels.set(key, true);
        if (this.#node !== null) this.#told.stands(key, this.#node);
      },
      () => this.#listening === listening && this.#lost(),
    );
  }

  #lost(): void {
    this.#end();
    for (const key of this.#channels.keys()) this.#channels.set(key, false);
    this.#later();
  }

  #later(): void {
    if (this.#closed) return;
    this.#attempts += 1;
    const delayMs = Math.min(25 * 2 ** Math.min(this.#attempts, 6), 1_000) * (0.5 + this.#random());
    this.#timer ??= this.#clock.after(delayMs, () => {
      this.#timer = null;
      this.#listen();
    });
  }

  /** A connection may be dead without knowing it. */
  #watchOver(listening: Listening): void {
    this.#clock.after(pingMs, () => {
      if (this.#listening !== listening) return;
      const late = this.#clock.after(pingMs, () => this.#listening === listening && this.#lost());
      listening.ping().then(
        () => {
          late.cancel();
          this.#watchOver(listening);
        },
        () => late.cancel(),
      );
    });
  }

  #end(): void {
    const listening = this.#listening;
    this.#listening = null;
    listening?.close();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const timer of this.#unwanted.values()) timer.cancel();
    this.#unwanted.clear();
    this.#channels.clear();
    this.#end();
  }
}
