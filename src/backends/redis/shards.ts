/**
 * Listens on sharded channels of a cluster, one for each slot in which entries of this client wait: a message then stays on
 * the node that has the slot. What is not heard here goes to the plain channel (scripts/quick.lua), so nothing hangs on it.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import { slotOf, tagOfSlot } from "./keys.ts";
import type { Link, Listening } from "./link.ts";
import { watchPulse } from "./pulse.ts";

/** A slot in which somebody waits, or has lately. */
interface Shard {
  readonly slot: number;
  readonly channel: string;
  waiting: number;
  /** Whether somebody has waited since the last round. */
  used: boolean;
  ear: Ear | null;
  /** Whether it was listened to by a connection that was given up: until the server notices, that one may still be told. */
  lost: boolean;
  /** Resolves when it listens; rejects when it cannot. */
  stands: Promise<void>;
  /** By when the server must have answered; Infinity once it has. */
  dueAt: number;
}

/** A connection to one node. */
interface Ear {
  readonly node: string;
  readonly listening: Listening;
  readonly shards: Set<Shard>;
  readonly endPulse: () => void;
}

/** What a server says that will say it again: the user may not, or it does not know the command. */
const refusals = /NOPERM|unknown command|has no permissions/i;

/** The sharded channels of one client. */
export class Shards {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #plain: string;
  readonly #deadlineMs: number;
  readonly #onMessage: (message: string) => void;
  readonly #onLost: (slots: ReadonlySet<number>) => void;
  readonly #shards = new Map<number, Shard>();
  readonly #ears = new Map<string, Ear>();
  #losses = 0;
  #lostLately = false;
  #again: Timer | null = null;
  #rounds: Timer | null = null;
  #refusal: string | null = null;
  #closed = false;

  /** `onLost` is called for slots whose messages may have been lost. */
  constructor(
    link: Link,
    clock: Clock,
    plain: string,
    deadlineMs: number,
    onMessage: (message: string) => void,
    onLost: (slots: ReadonlySet<number>) => void,
  ) {
    this.#link = link;
    this.#clock = clock;
    this.#plain = plain;
    this.#deadlineMs = deadlineMs;
    this.#onMessage = onMessage;
    this.#onLost = onLost;
  }

  /** Where entries of a slot want to be told: on the plain channel if it cannot be had otherwise. */
  channelOf(slot: number): string {
    if (this.#refusal !== null) return this.#plain;
    const sharded = `${this.#plain}{${tagOfSlot(slot)}}`;
    // A prefix with a brace of its own may have another hash tag.
    return !this.#plain.includes("{") || slotOf(sharded) === slot ? sharded : this.#plain;
  }

  /** One more entry waits in a slot. */
  waits(slot: number): void {
    const known = this.#shards.get(slot);
    if (known !== undefined) {
      known.waiting += 1;
      known.used = true;
      return;
    }
    const channel = this.channelOf(slot);
    if (this.#closed || channel === this.#plain) return;
    const shard = {
      slot,
      channel,
      waiting: 1,
      used: true,
      ear: null,
      lost: false,
      stands: Promise.resolve(),
      dueAt: Number.POSITIVE_INFINITY,
    };
    this.#shards.set(slot, shard);
    this.#rounds ??= this.#clock.after(this.#deadlineMs, () => this.#round());
    if (this.#again === null) this.#subscribe(shard);
  }

  /** One entry fewer. */
  leaves(slot: number): void {
    const shard = this.#shards.get(slot);
    if (shard !== undefined && shard.waiting > 0) shard.waiting -= 1;
  }

  /** Listens in a slot and sends a message there; null if it was heard, else why it cannot be. */
  async test(slot: number): Promise<string | null> {
    this.waits(slot);
    try {
      const channel = this.channelOf(slot);
      if (channel === this.#plain) return this.#refusal ?? "the prefix has a brace of its own";
      await this.#shards.get(slot)?.stands;
      const heard = await this.#link.send("SPUBLISH", [channel, ""], channel);
      return Number(heard) > 0 ? null : "a message was not heard";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      this.leaves(slot);
    }
  }

  #subscribe(shard: Shard): void {
    let ear: Ear;
    try {
      ear = this.#earFor(shard.slot);
    } catch {
      return this.#later();
    }
    ear.shards.add(shard);
    shard.ear = ear;
    shard.dueAt = this.#clock.now() + this.#deadlineMs;
    shard.stands = ear.listening.subscribeSharded(shard.channel);
    shard.stands.then(
      () => this.#stands(shard, ear),
      (error: unknown) => this.#lost(ear, error),
    );
  }

  /** What the one before was told meanwhile is looked for. */
  #stands(shard: Shard, ear: Ear): void {
    if (shard.ear !== ear) return;
    shard.dueAt = Number.POSITIVE_INFINITY;
    if (shard.lost) this.#onLost(new Set([shard.slot]));
    shard.lost = false;
  }

  #earFor(slot: number): Ear {
    const node = this.#link.nodeOf(slot);
    if (node === undefined) throw new Error("nobody is known to have the slot");
    const known = this.#ears.get(node);
    if (known !== undefined) return known;
    const lost = (cause?: unknown): void => this.#lost(ear, cause);
    const listening = this.#link.listen({ onMessage: this.#onMessage, onDown: lost }, slot);
    const endPulse = watchPulse(listening, this.#clock, this.#deadlineMs, lost);
    const ear: Ear = { node, listening, shards: new Set(), endPulse };
    this.#ears.set(node, ear);
    return ear;
  }

  /** A slot that moves ends its connection, too: where it is now shows when all are asked for again. */
  #lost(ear: Ear, cause: unknown): void {
    if (this.#ears.get(ear.node) !== ear) return;
    this.#close(ear);
    const slots = new Set<number>();
    for (const shard of ear.shards) {
      shard.ear = null;
      shard.lost = true;
      shard.dueAt = Number.POSITIVE_INFINITY;
      slots.add(shard.slot);
    }
    if (cause instanceof Error && refusals.test(cause.message)) this.#refuse(cause.message);
    else this.#later();
    this.#onLost(slots);
  }

  #close(ear: Ear): void {
    this.#ears.delete(ear.node);
    ear.endPulse();
    ear.listening.close();
  }

  #refuse(why: string): void {
    this.#refusal = why;
    this.#shards.clear();
    for (const ear of this.#ears.values()) this.#close(ear);
  }

  #later(): void {
    if (this.#again !== null || this.#closed) return;
    this.#lostLately = true;
    this.#losses += 1;
    const delayMs = Math.min(10 * 2 ** Math.min(this.#losses, 7), 1_000) * (0.5 + Math.random());
    this.#again = this.#clock.after(delayMs, () => {
      this.#again = null;
      for (const shard of this.#shards.values()) {
        if (shard.ear === null && this.#again === null) this.#subscribe(shard);
      }
    });
  }

  /** Ends what nobody has waited for since the last round, and what hangs. */
  #round(): void {
    this.#rounds = null;
    if (!this.#lostLately) this.#losses = 0;
    this.#lostLately = false;
    const now = this.#clock.now();
    for (const shard of this.#shards.values()) {
      if (shard.ear !== null && shard.dueAt <= now) this.#lost(shard.ear, null);
      if (shard.waiting === 0 && !shard.used) this.#drop(shard);
      shard.used = false;
    }
    if (this.#shards.size > 0) this.#rounds = this.#clock.after(this.#deadlineMs, () => this.#round());
  }

  #drop(shard: Shard): void {
    const { ear } = shard;
    this.#shards.delete(shard.slot);
    if (ear === null) return;
    ear.shards.delete(shard);
    if (ear.shards.size === 0) this.#close(ear);
    else ear.listening.unsubscribeSharded(shard.channel).catch(() => {});
  }

  close(): void {
    this.#closed = true;
    this.#again?.cancel();
    this.#rounds?.cancel();
    for (const ear of this.#ears.values()) this.#close(ear);
    this.#shards.clear();
  }
}
