/** The calls of the seam on Redis. What they do there is written in scripts/, how they travel in outbox.ts. */
import { randomBytes } from "node:crypto";
import type {
  Admissible,
  Backend,
  Browsable,
  Entry,
  Examinable,
  Finding,
  NewEntry,
  Owner,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import { afterReading, type Clock, systemClock } from "../../core/clock.ts";
import { invalid } from "../../core/errors.ts";
import type { Confirmation } from "./batch.ts";
import {
  appendCall,
  bequeathCall,
  type Call,
  evictCall,
  listCall,
  Manner,
  pruneCall,
  removeCall,
} from "./calls.ts";
import { queuesIn } from "./browse.ts";
import { closed, notAnswered, notConnected, sentFailure } from "./failures.ts";
import { type Health, unfitnessOf } from "./fitness.ts";
import { examineServers, isSafeFromEviction, pushFinding, warnOfStep } from "./health.ts";
import { Hub } from "./hub.ts";
import { KeyNames, nameOfKey, type PlacedKeys } from "./keys.ts";
import { asText, type Link } from "./link.ts";
import { Outbox } from "./outbox.ts";
import { Phrases } from "./phrases.ts";
import { packEntry, packOwner, readList, wholeMs } from "./records.ts";
import { Renewals } from "./renewals.ts";
import { ServerClocks } from "./server-clock.ts";
import { Appending, Asking } from "./takers.ts";

/** What Redis promises: one server that keeps its data and its clock. What breaks that is listed. */
export const redisTraits: Traits = {
  scope: "network",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "store",
  tokens: "the server's clock in microseconds, or one more than the last",
  wake: "push",
  exclusivityBrokenBy: ["store-restart", "fail-over", "clock-step", "eviction"],
  tokensRegressAfter: ["fail-over", "clock-step"],
  callOrder: true,
};

/** How a client of Redis is set up. */
export interface Settings {
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly confirmation: Confirmation | null;
  readonly health: Health;
  readonly clock?: Clock | undefined;
}

/** One client of the locks on a Redis server. */
export class RedisBackend implements Backend, Browsable, Examinable, Admissible {
  readonly name = "redis";
  readonly place: string | undefined;
  #traits: Traits;
  /** Not on a cluster: where calls may overtake each other, whoever asks within a section could find the one before still in the queue. */
  readonly handOver?: (queue: string, id: string, seq: bigint, heir: string) => Promise<boolean>;
  readonly #link: Link;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #serverClocks: ServerClocks;
  readonly #outbox: Outbox;
  readonly #hub: Hub;
  readonly #keys: KeyNames;
  readonly #phrases: Phrases;
  readonly #common = new WeakMap<Owner, { readonly channel: string; readonly text: string }>();
  readonly #takeBack = (keys: PlacedKeys, id: string): void => {
    this.#ask(keys, removeCall(id, undefined), isOne).catch(() => {});
  };
  #lastLike: NewEntry | null = null;
  #lastManner: Manner | null = null;
  #started = false;
  #closed = false;
  #onEvicted: ((queue: string, id: string) => void) | null = null;

  /** @internal Made by redisBackend. */
  constructor(link: Link, settings: Settings, place: string | undefined) {
    const { prefix, deadlineMs, confirmation, clock = systemClock } = settings;
    this.place = place;
    this.#link = link;
    this.#settings = settings;
    this.#clock = clock;
    this.#traits = { ...redisTraits, callOrder: link.inOrder };
    if (link.inOrder) this.handOver = (queue, id, seq, heir) => this.#handOver(queue, id, seq, heir);
    this.#keys = new KeyNames(prefix, link.cluster);
    this.#phrases = new Phrases(this.#keys);
    const channel = `${prefix}client:${randomBytes(9).toString("base64url")}`;
    this.#serverClocks = new ServerClocks(warnOfStep);
    this.#outbox = new Outbox(
      link,
      clock,
      deadlineMs,
      confirmation,
      this.#serverClocks,
      () => this.#hub.connection,
    );
    this.#hub = new Hub(link, clock, channel, deadlineMs, (key, id) => {
      const queue = nameOfKey(prefix, key);
      if (queue !== null) this.#onEvicted?.(queue, id);
    });
  }

  /** What this store promises: what an examination has shown that it cannot do to us is left out. */
  get traits(): Traits {
    return this.#traits;
  }

  /** @internal Connects, unless that has begun; calls wait for it. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    const ready = (): void => {
      // Whoever waits must be told from the start: calls go when somebody listens, or cannot.
      this.#hub.start(() => this.#outbox.release());
      this.#outbox.flush();
    };
    this.#link.start(ready);
    if (this.#link.isReady) ready();
  }

  /** @internal Resolves when the server answers. Rejects with LOCK_UNAVAILABLE. */
  async ready(): Promise<void> {
    try {
      await this.#ask(this.#keys.of("-ready"), listCall, () => null);
    } catch (error) {
      throw this.#closed || this.#link.lastError === null
        ? error
        : notConnected(this.#settings.deadlineMs, this.#link.lastError);
    }
  }

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    const { id, permits, weight, onlyIfGranted = false } = entry;
    if (!isId(id)) return Promise.reject(invalid("an entry's id must have text, without NUL"));
    // By its rule it could never hold.
    if (onlyIfGranted && permits !== undefined && weight > permits) return Promise.resolve(null);
    const keys = this.#keys.of(queue);
    return new Promise((resolve, reject) => {
      this.#open();
      const call = appendCall(id, this.#mannerOf(entry));
      const taker = new Appending(keys, entry, this.#hub, this.#takeBack, resolve, reject);
      this.#hub.asks(id);
      this.#outbox.add(keys, call, taker, this.#commonOf(entry.owner, keys.slot));
    });
  }

  /** How an entry is appended: that of the last one where nothing differs, as most are alike. */
  #mannerOf(entry: NewEntry): Manner {
    const last = this.#lastLike;
    const { mode, weight, permits, ttlMs, metadata, onlyIfGranted } = entry;
    const like =
      last !== null &&
      last.mode === mode &&
      last.weight === weight &&
      last.permits === permits &&
      last.ttlMs === ttlMs &&
      last.metadata === metadata &&
      last.onlyIfGranted === onlyIfGranted;
    if (like && this.#lastManner !== null) return this.#lastManner;
    this.#lastLike = { ...entry };
    return (this.#lastManner = new Manner(wholeMs(ttlMs), onlyIfGranted === true, packEntry(entry)));
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    return new Promise((resolve) => {
      this.#open();
      const all = new Renewals(renewals, this.#outbox, this.#keys, this.#phrases, resolve);
      all.send(this.#hub.isQuiet ? null : (id) => this.#hub.isWaiting(id));
    });
  }

  remove(queue: string, id: string, evict = false, seq?: bigint): Promise<boolean> {
    // Nobody has such an id, and a line of several begins with its NUL.
    if (!isId(id)) return Promise.resolve(false);
    this.#hub.forget(id);
    return this.#ask(this.#keys.of(queue), evict ? evictCall(id, seq) : removeCall(id, seq), isOne);
  }

  #handOver(queue: string, id: string, seq: bigint, heir: string): Promise<boolean> {
    this.#hub.forget(id);
    this.#hub.forget(heir);
    return new Promise((resolve, reject) => {
      this.#open();
      const keys = this.#keys.of(queue);
      this.#outbox.addLater(keys, bequeathCall(id, seq, heir), new Asking(keys, isOne, resolve, reject));
    });
  }

  list(queue: string): Promise<readonly Entry[]> {
    return this.#ask(this.#keys.of(queue), listCall, readList);
  }

  async watch(
    queue: string,
    self: Entry,
    _target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    this.#open();
    return this.#hub.watch(this.#keys.of(queue).slot, self, onChange);
  }

  async queues(prefix: string): Promise<readonly string[]> {
    await this.ready();
    const scan = queuesIn(this.#link, this.#settings.prefix, prefix, (command) => this.#inTime(command));
    const names = [...(await scan)];
    const live = await Promise.all(names.map((queue) => this.#ask(this.#keys.of(queue), pruneCall, isOne)));
    return names.filter((_name, index) => live[index]);
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#onEvicted = listener;
  }

  admit(): Promise<readonly Finding[]> {
    return unfitnessOf(this, this.#settings.health);
  }

  async examine(): Promise<readonly Finding[]> {
    await this.ready();
    const seen = await this.#inTime(examineServers(this.#link, this.#settings, this.#serverClocks));
    const push = this.#link.cluster ? [pushFinding(await this.#testShards())] : [];
    const findings = [...seen, ...push];
    const exclusivityBrokenBy = redisTraits.exclusivityBrokenBy.filter(
      (fault) => fault !== "eviction" || !isSafeFromEviction(findings),
    );
    this.#traits = { ...this.#traits, exclusivityBrokenBy };
    return findings;
  }

  /** Why messages do not stay on the node of their slot; null if they do. */
  #testShards(): Promise<string | null> {
    return this.#inTime(this.#hub.testShards(this.#keys.of("-push").slot)).catch(String);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#onEvicted = null;
    this.#hub.close();
    this.#outbox.close();
    await this.#link.close();
  }

  #open(): void {
    if (this.#closed) throw closed();
    this.start();
  }

  /** What the entries of one owner in one slot have in common: where they are told, and whose they are. */
  #commonOf(owner: Owner, slot: number): string {
    const channel = this.#hub.channelOf(slot);
    let common = this.#common.get(owner);
    if (common?.channel !== channel) {
      common = { channel, text: `${channel}\0${packOwner(owner)}` };
      this.#common.set(owner, common);
    }
    return common.text;
  }

  #ask<T>(keys: PlacedKeys, call: Call, read: (answer: unknown, nowUs: number) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#open();
      this.#outbox.add(keys, call, new Asking(keys, read, resolve, reject));
    });
  }

  /** A command that does not travel with the calls, waited for no longer than they are. */
  #inTime<T>(command: Promise<T>): Promise<T> {
    const { deadlineMs } = this.#settings;
    return new Promise((resolve, reject) => {
      const timer = afterReading(this.#clock, deadlineMs, () => reject(notAnswered(deadlineMs)));
      const fail = (error: unknown): void => reject(sentFailure(error));
      void command.then(resolve, fail).finally(() => timer.cancel());
    });
  }
}

function isId(text: string): boolean {
  return text !== "" && !text.includes("\0");
}

function isOne(answer: unknown): boolean {
  return answer === 1 || asText(answer) === "1";
}
