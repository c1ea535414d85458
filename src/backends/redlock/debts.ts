/** Releases that a node was not heard to have done: sent again when it is back, for as long as they can matter. */
import type { Clock } from "../../core/clock.ts";

/** A release that is owed to a node. */
export interface Debt {
  readonly key: string;
  readonly id: string;
  readonly seq: string;
  /** The same entry has been asked for again: what was owed before that would hit it, and is owed no more. */
  isPast?: boolean;
}

/** After this an entry that nobody renews is gone by itself, in all but odd cases, in milliseconds. */
const keptMs = 300_000;

/** The ttl frees what is beyond this. */
const mostDebts = 10_000;

/** What is owed to one node. */
export class Debts {
  readonly #clock: Clock;
  readonly #debts = new Map<string, { readonly debt: Debt; readonly since: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  owe(debt: Debt): void {
    if (debt.isPast !== true && this.#debts.size < mostDebts)
      this.#debts.set(nameOf(debt), { debt, since: this.#clock.recent() });
  }

  /** It was done, though late. */
  settle(debt: Debt): void {
    if (this.#debts.size > 0) this.#debts.delete(nameOf(debt));
  }

  /** All that is owed, to be sent now. */
  take(): readonly Debt[] {
    const oldest = this.#clock.now() - keptMs;
    const owed = [...this.#debts.values()].filter(({ debt, since }) => since >= oldest && !debt.isPast);
    this.#debts.clear();
    return owed.map(({ debt }) => debt);
  }
}

function nameOf({ key, id, seq }: Debt): string {
  return `${id}\0${seq}\0${key}`;
}
