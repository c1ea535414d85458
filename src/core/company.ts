/**
 * Claims that are renewed together, for as long as the store answers for all of them alike: what is believed of one is believed
 * of all, and is noted once instead of once for each. Who is in company, and when it ends, is decided by keeper.ts.
 */
import type { Due, Moment } from "./agenda.ts";
import type { Renewal } from "./backend.ts";
import type { Claim } from "./claim.ts";

/** What stands on the agenda of a keeper. */
export type Kept = Claim | Company;

/** Held claims of one ttl; each of them knows that it is in company, and leaves it when it ends. */
export class Company implements Due<Kept> {
  /** All that it began with; some may have left. */
  readonly claims: readonly Claim[];
  readonly renewals: readonly Renewal[];
  readonly ttlMs: number;
  /** Until when the entries of all are surely in their queues, unless somebody takes them out. */
  validUntil = 0;
  renewAt = 0;
  #size: number;

  // These belong to the keeper's agenda.
  moment: Moment<Kept> | null = null;
  earlier: Kept | null = null;
  later: Kept | null = null;

  constructor(claims: readonly Claim[], renewals: readonly Renewal[], ttlMs: number) {
    this.claims = claims;
    this.renewals = renewals;
    this.ttlMs = ttlMs;
    this.#size = claims.length;
    for (const claim of claims) claim.company = this;
  }

  /** Whether nobody has left. */
  get isWhole(): boolean {
    return this.#size === this.claims.length;
  }

  /** Those who have not left. */
  members(): readonly Claim[] {
    return this.claims.filter(({ company }) => company === this);
  }

  /** One of them leaves. True if it was the last. */
  lose(claim: Claim): boolean {
    claim.company = null;
    this.#size -= 1;
    return this.#size === 0;
  }

  nextMoment(): number {
    return Math.min(this.renewAt, this.validUntil);
  }
}
