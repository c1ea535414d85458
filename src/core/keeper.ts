/**
 * The only timers of a client: renews its entries in batches, waiters too, tells those whose moment has come, and takes
 * entries back that nobody wants any more. What a claim makes of it is written in claim.ts, what a release in take-out.ts.
 */
import { Agenda } from "./agenda.ts";
import type { Backend, Renewal, Renewed } from "./backend.ts";
import { channels } from "./channels.ts";
import type { Claim } from "./claim.ts";
import type { Clock, Random, Timer } from "./clock.ts";
import { Company, type Kept } from "./company.ts";
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
  readonly #agenda: Agenda<Kept>;
  readonly #leavings: Agenda<Leaving>;
  /** Where on the grid of moments this client renews: a fraction that differs between clients. */
  readonly #phase: number;
  readonly #removals = new Set<Promise<void>>();
  #byId: Map<string, Claim> | null = null;
  #forgetting: Timer | null = null;
  /** Whose moment has come: off the agenda until each has been attended to. */
  #attended: readonly Kept[] = [];

  constructor(backend: Backend, clock: Clock, random: Random) {
    this.#backend = backend;
    this.#clock = clock;
    this.#random = random;
    this.#phase = random();
    this.#agenda = new Agenda(clock, (kept, now) => this.#attend(kept, now));
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
    const { company } = claim;
    if (company === null) this.#agenda.remove(claim);
    else if (company.lose(claim)) this.#agenda.remove(company);
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
    const offAgenda = this.#attended.filter(({ moment }) => moment === null);
    const all = [...this.#agenda.items(), ...offAgenda].flatMap(membersOf);
    return all.filter((claim) => claim.alive);
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

  #attend(kept: readonly Kept[], now: number): void {
    const due: Claim[] = [];
    const together: Company[] = [];
    this.#attended = kept;
    // Those in small companies are joined with whom they meet, so that there are few calls.
    const loose = kept.filter((one) => !isFull(one)).length;
    for (const one of kept) {
      if (one instanceof Company && now < one.validUntil && (isFull(one) || loose === 1)) {
        one.renewAt = this.renewalAfter(now, one.ttlMs);
        this.#agenda.set(one, one.nextMoment());
        together.push(one);
      } else {
        for (const claim of this.#apart(one)) if (this.#attendTo(claim, now)) due.push(claim);
      }
    }
    this.#attended = [];
    for (const company of together) {
      // Some may have left, or been ended by what another one told.
      if (company.isWhole) void this.#renewTogether(company);
      else due.push(...this.#apart(company));
    }
    this.#renew(due);
  }

  /** True if it is to be renewed now. */
  #attendTo(claim: Claim, now: number): boolean {
    // A loss is told to listeners, and they may have ended any of the others.
    if (!claim.alive) return false;
    const wantsRenewal = claim.attend(now);
    if (!claim.alive) return false;
    this.keep(claim);
    return wantsRenewal;
  }

  /** Ends a company: from now on each claim is kept by itself. */
  #apart(one: Kept): readonly Claim[] {
    if (!(one instanceof Company)) return [one];
    const members = one.members();
    for (const claim of members) this.#part(claim, one);
    return members;
  }

  #part(claim: Claim, company: Company): void {
    claim.partFrom(company);
    if (company.lose(claim)) this.#agenda.remove(company);
    this.keep(claim);
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
    const renewals = claims.map((claim) => claim.renewal);
    const round = await this.#ask(claims, renewals);
    if (!this.#unite(round)) this.#tell(round);
  }

  async #renewTogether(company: Company): Promise<void> {
    const round = await this.#ask(company.claims, company.renewals);
    const until = sharedUntil(round, company.ttlMs);
    const isValid = company.isWhole && round.now < company.validUntil;
    if (isValid && until !== null) this.#believe(company, until, round.sentAt);
    else this.#tell(round);
  }

  async #ask(claims: readonly Claim[], renewals: readonly Renewal[]): Promise<Round> {
    const sentAt = this.#clock.now();
    let answers: readonly Renewed[];
    try {
      answers = await this.#backend.renew(renewals);
    } catch (cause) {
      answers = renewals.map(() => ({ outcome: "unknown", cause }));
    }
    return { claims, renewals, answers, sentAt, now: this.#clock.now() };
  }

  /** Tells each claim what came of its renewal. */
  #tell({ claims, renewals, answers, sentAt, now }: Round): void {
    claims.forEach((claim, index) => {
      // An answer about an earlier place in the queue says nothing about this one.
      if (!claim.alive || !claim.asks(renewals[index])) return;
      if (claim.company !== null) this.#part(claim, claim.company);
      claim.renewed(answers[index] ?? { outcome: "unknown" }, sentAt, now);
      if (claim.alive) this.keep(claim);
    });
  }

  /** Makes a company of claims that were renewed alike. False if they have to be told one by one. */
  #unite(round: Round): boolean {
    const { claims, renewals, sentAt, now } = round;
    const ttlMs = renewals[0]?.ttlMs ?? 0;
    const until = claims.length < 2 ? null : sharedUntil(round, ttlMs);
    if (until === null) return false;
    if (!claims.every((claim, index) => claim.mayShare(renewals[index], ttlMs, now, until))) return false;
    for (const claim of claims) this.#agenda.remove(claim);
    this.#believe(new Company(claims, renewals, ttlMs), until, sentAt);
    return true;
  }

  #believe(company: Company, until: number, sentAt: number): void {
    company.validUntil = Math.max(company.validUntil, until);
    company.renewAt = this.renewalAfter(sentAt, company.ttlMs);
    this.#agenda.set(company, company.nextMoment());
  }
}

/** Claims that were renewed by one call, and what the store said; in the same order. */
interface Round {
  readonly claims: readonly Claim[];
  readonly renewals: readonly Renewal[];
  readonly answers: readonly Renewed[];
  readonly sentAt: number;
  readonly now: number;
}

function isFull(one: Kept): boolean {
  return one instanceof Company && one.claims.length === batchSize && one.isWhole;
}

function membersOf(one: Kept): readonly Claim[] {
  return one instanceof Company ? one.members() : [one];
}

/** Until when all of them may be believed; null if the answers are not alike, or if each has to be told. */
function sharedUntil({ renewals, answers, sentAt }: Round, ttlMs: number): number | null {
  const [first] = answers;
  if (first?.outcome !== "renewed" || answers.length !== renewals.length) return null;
  const { expiresInMs } = first;
  // A store that gives much less than was asked for is asked again sooner.
  if (channels.renew.hasSubscribers || expiresInMs < 0.5 * ttlMs) return null;
  const isAlike = (answer: Renewed): boolean =>
    answer === first || (answer.outcome === "renewed" && answer.expiresInMs === expiresInMs);
  return answers.every(isAlike) ? sentAt + expiresInMs - marginMs(expiresInMs) : null;
}
