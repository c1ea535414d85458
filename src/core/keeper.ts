/**
 * The only timers of a client: renews its entries in batches, waiters too, tells those whose moment has come, and takes
 * entries back that nobody wants any more. What a claim makes of it is written in claim.ts, what a release in take-out.ts.
 */
import { Agenda } from "./agenda.ts";
import type { Backend, Renewed } from "./backend.ts";
import type { Claim } from "./claim.ts";
import type { Clock, Random, Timer } from "./clock.ts";
import type { Leaving } from "./take-out.ts";

/** How many entries one renew call carries at most. */
const batchSize = 500;

/** How exactly the moments are kept at which an answer is late, in milliseconds. */
const lateGridMs = 16;

/** How many times a removal that failed is tried again. */
const removalTries = 5;

/** How long an index of all claims is kept. */
const indexMs = 100;

/** How long close waits for calls that are under way, and again for what is being taken back. */
const closeMs = 2_000;

/** How much earlier than the store we stop believing: covers the drift of clocks and the lateness of timers. */
export function marginMs(lifeMs: number): number {
  return Math.min(0.1 * lifeMs, 5 + 0.01 * lifeMs);
}

/** A backend tells one listener of evictions, and may have more than one manager. */
const keepers = new WeakMap<Backend, Set<Keeper>>();

function keepersOf(backend: Backend): Set<Keeper> {
  const known = keepers.get(backend);
  if (known !== undefined) return known;
  const all = new Set<Keeper>();
  keepers.set(backend, all);
  backend.onEvicted?.((queue, id) => {
    for (const keeper of all) keeper.check(queue, id);
  });
  return all;
}

/** Keeps the claims of one client. */
export class Keeper {
  readonly #backend: Backend;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #agenda: Agenda<Claim>;
  readonly #leavings: Agenda<Leaving>;
  /** Where on the grid of moments this client renews: a fraction that differs between clients. */
  readonly #phase: number;
  readonly #removals = new Set<Promise<void>>();
  #byId: Map<string, Claim> | null = null;
  #forgetting: Timer | null = null;
  /** Whose moment has come: off the agenda until each has been attended to. */
  #attended: readonly Claim[] = [];

  constructor(backend: Backend, clock: Clock, random: Random) {
    this.#backend = backend;
    this.#clock = clock;
    this.#random = random;
    this.#phase = random();
    this.#agenda = new Agenda(clock, (claims, now) => this.#attend(claims, now));
    this.#leavings = new Agenda(clock, (leavings) => {
      for (const leaving of leavings) leaving.late();
    });
    keepersOf(backend).add(this);
  }

  /** Keeps a claim on the agenda, at its next moment. */
  keep(claim: Claim): void {
    this.#agenda.set(claim, claim.nextMoment());
  }

  /** Forgets a claim. This is final: a renewal under way will not touch it any more. */
  drop(claim: Claim): void {
    this.#agenda.remove(claim);
  }

  /** Tells a release when its answer is late. */
  await(leaving: Leaving): void {
    this.#leavings.set(leaving, this.lateAfter(this.#clock.recent(), leaving.withinMs));
  }

  /** The answer to a release is not awaited any more. */
  heard(leaving: Leaving): void {
    this.#leavings.remove(leaving);
  }

  /** All claims that are kept now. */
  claims(): readonly Claim[] {
    const offAgenda = this.#attended.filter((claim) => claim.alive && claim.moment === null);
    return [...this.#agenda.items(), ...offAgenda];
  }

  /**
   * When an entry that was asked for at `now` is to be renewed: after about a third of its life, on a grid on which
   * entries of the same ttl meet, so that they travel together.
   */
  renewalAfter(now: number, ttlMs: number): number {
    const grid = ttlMs / 12;
    const offset = this.#phase * grid;
    return Math.floor((now + ttlMs / 3 - offset) / grid) * grid + offset;
  }

  /** When an answer is late that was asked for at `now` and has so long: a little more than that, so that many share a moment. */
  lateAfter(now: number, withinMs: number): number {
    return Math.ceil(now / lateGridMs) * lateGridMs + withinMs;
  }

  /** Takes an entry out in the background, trying again for as long as it could live. */
  discard(queue: string, id: string, ttlMs: number): void {
    const removal = this.#discard(queue, id, ttlMs);
    this.#removals.add(removal);
    void removal.then(() => this.#removals.delete(removal));
  }

  async #discard(queue: string, id: string, ttlMs: number): Promise<void> {
    for (let tries = 0; tries < removalTries; tries++) {
      try {
        await this.#backend.remove(queue, id);
        return;
      } catch {
        // The ttl frees the entry in any case; trying again only makes it sooner.
        await this.#pause((ttlMs / 2 ** (removalTries - tries)) * (0.5 + this.#random()));
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(ms, resolve);
    });
  }

  /** Ends all claims and waits, within bounds, until nothing of them is under way; then cancels the timer. */
  async close(): Promise<void> {
    const closing = this.claims().map((claim) => claim.close());
    await this.#within(closeMs, Promise.all(closing));
    await this.#within(closeMs, Promise.all(this.#removals));
    this.#agenda.clear();
    keepersOf(this.#backend).delete(this);
    // What is under way is still told when its answer is late.
    if (this.#leavings.items().length === 0) this.#leavings.clear();
    this.#forget();
  }

  #within(ms: number, work: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(ms, resolve);
      void work.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  #attend(claims: Claim[], now: number): void {
    const due: Claim[] = [];
    this.#attended = claims;
    for (const claim of claims) {
      // A loss is told to listeners, and they may have ended any of the others.
      if (!claim.alive) continue;
      const wantsRenewal = claim.attend(now);
      if (!claim.alive) continue;
      this.keep(claim);
      if (wantsRenewal) due.push(claim);
    }
    this.#attended = [];
    this.#renew(due);
  }

  /** Asks the store about an entry that it says was evicted. */
  check(queue: string, id: string): void {
    const claim = this.#byId?.get(id) ?? this.#indexed().get(id);
    if (claim?.alive && claim.joined && claim.queue === queue) this.#renew([claim]);
  }

  /** All claims by id: made when somebody evicts, and kept for a moment, since a theft may evict many. */
  #indexed(): Map<string, Claim> {
    this.#forgetting ??= this.#clock.after(indexMs, () => this.#forget());
    this.#byId = new Map(this.claims().map((claim) => [claim.id, claim]));
    return this.#byId;
  }

  #forget(): void {
    this.#forgetting?.cancel();
    this.#forgetting = null;
    this.#byId = null;
  }

  #renew(claims: readonly Claim[]): void {
    for (let from = 0; from < claims.length; from += batchSize) {
      void this.#renewBatch(claims.slice(from, from + batchSize));
    }
  }

  async #renewBatch(due: readonly Claim[]): Promise<void> {
    // One that is due may have been ended by what another one told.
    const claims = due.filter((claim) => claim.alive);
    if (claims.length === 0) return;
    const sentAt = this.#clock.now();
    const renewals = claims.map((claim) => claim.renewal);
    let answers: readonly Renewed[];
    try {
      answers = await this.#backend.renew(renewals);
    } catch (cause) {
      answers = claims.map(() => ({ outcome: "unknown", cause }));
    }
    const now = this.#clock.now();
    claims.forEach((claim, index) => {
      // An answer about an earlier place in the queue says nothing about this one.
      if (!claim.alive || !claim.asks(renewals[index])) return;
      claim.renewed(answers[index] ?? { outcome: "unknown" }, sentAt, now);
      if (claim.alive) this.keep(claim);
    });
  }
}
