/** Begins and ends the transactions of one connection, and raises the ceiling of the seqs; what they do is written in ledger.ts. */
import type { Database, Statement } from "./driver.ts";
import { failureOf, isBusy } from "./failure.ts";
import { CeilingReached } from "./ledger.ts";
import type { Statements } from "./statements.ts";

/** How far the ceiling of the seqs is raised at a time, in microseconds: so often the disk is waited for, under use. */
const headroom = 60_000_000n;

/** What happens after a transaction. */
export interface Ends {
  committed(): void;
  undone(): void;
}

/** The transactions of one connection. An error of a busy file goes through as it is: nothing was done. */
export class Transactions {
  readonly #path: string;
  readonly #db: Database;
  readonly #statements: Statements;
  readonly #ends: Ends;

  constructor(path: string, db: Database, statements: Statements, ends: Ends) {
    this.#path = path;
    this.#db = db;
    this.#statements = statements;
    this.#ends = ends;
  }

  /** Does the work in a transaction, again if the ceiling has to be raised for it. */
  run<T>(work: () => T, begin: Statement = this.#statements.begin): T {
    let result: T;
    for (;;) {
      try {
        begin.run();
        result = this.#finish(work);
        break;
      } catch (error) {
        if (isBusy(error)) throw error;
        if (!(error instanceof CeilingReached)) throw failureOf(error, this.#path);
        this.direct(() => this.#raiseCeiling(error.seq));
      }
    }
    // Outside of the above: whoever is told may call again, and what comes of that is no failure of this transaction.
    this.#ends.committed();
    return result;
  }

  /** A read, or a statement that is a transaction of its own. */
  direct<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw isBusy(error) ? error : failureOf(error, this.#path);
    }
  }

  /** What one statement may do, else what a transaction does. */
  alone<A, B>(alone: () => A | null, together: () => B): A | B {
    return this.direct(alone) ?? this.run(together);
  }

  /** A power cut may lose commits that the disk has not seen; so this one waits for it. */
  #raiseCeiling(seq: bigint): void {
    this.#db.exec("PRAGMA synchronous = FULL");
    try {
      this.#statements.begin.run();
      this.#finish(() => this.#statements.raiseCeiling.run(seq + headroom));
    } finally {
      this.#db.exec("PRAGMA synchronous = NORMAL");
    }
  }

  #finish<T>(work: () => T): T {
    try {
      const result = work();
      this.#statements.commit.run();
      return result;
    } catch (error) {
      this.#ends.undone();
      try {
        this.#statements.rollback.run();
      } catch {
        // SQLite has rolled back by itself, as it does when the disk is full.
      }
      throw error;
    }
  }
}
