/**
 * The guard for SQL databases: a write and the check of its token are one transaction. The SQL is that of `fence` and
 * `fencedUpdate`; how each database is asked is in sql/databases.ts.
 */
import { hasCode, LockError } from "../core/errors.ts";
import { checkResource, type FencedChange } from "../sql/fenced.ts";
import type { Guard } from "./guard.ts";
import type { Connection, SqlDatabase } from "./sql/databases.ts";
import { type Holder, tokenOf } from "./token.ts";

/** What is to be written to a row, and by whom. */
export type FencedRow = Omit<FencedChange, "token"> & { readonly holder: Holder };

/** How often a transaction begins anew when others were preferred before its work has begun. */
const tries = 10;

/** Guards whatever a transaction writes, by the name of a resource, or rows by a column of theirs. */
export class SqlGuard<Tx extends Connection> implements Guard {
  readonly #database: SqlDatabase<Tx>;

  /** @internal Made by postgresGuard and mysqlGuard. */
  constructor(database: SqlDatabase<Tx>) {
    this.#database = database;
  }

  /**
   * Does the work in a transaction, unless the resource has seen a newer token: then it rejects with LOCK_STALE_TOKEN, and
   * the work was not begun. Writers of one resource go one after the other. If the work throws, all of it is rolled back
   * and the error is passed on; let errors of the database out of the work, since they may have ended the transaction.
   */
  async write<T>(resource: string, holder: Holder, work: (tx: Tx) => T | Promise<T>): Promise<T> {
    const { token, lock } = tokenOf(holder);
    checkResource(resource);
    const { tx } = await this.#begin(resource, lock, (begun) => this.#database.fence(begun, resource, token));
    let result: T;
    try {
      result = await work(tx);
    } catch (error) {
      await this.#giveUp(tx);
      throw error;
    }
    await this.#commit(tx, resource);
    return result;
  }

  /**
   * Writes a row, unless it has seen a newer token: then it rejects with LOCK_STALE_TOKEN. The row keeps the token in a
   * column of its own, so nothing else is needed. False if there is no such row.
   */
  async update({ holder, ...change }: FencedRow): Promise<boolean> {
    const { token, lock } = tokenOf(holder);
    const { table } = change;
    // In a transaction, since the connections of a pool may be set not to commit by themselves.
    const { tx, given } = await this.#begin(table, lock, (begun) =>
      this.#database.update(begun, { ...change, token }),
    );
    await this.#commit(tx, table);
    return given;
  }

  async show(resource: string, holder: Holder): Promise<void> {
    await this.write(resource, holder, () => {});
  }

  async highest(resource: string): Promise<bigint | null> {
    checkResource(resource);
    const tx = await this.#open(resource);
    try {
      // A connection that does not commit by itself would go on seeing what it saw at its first look.
      await this.#database.begin(tx);
      return await this.#database.highest(tx, resource);
    } catch (error) {
      throw this.#failed(resource, error);
    } finally {
      await this.#giveUp(tx);
    }
  }

  /** A transaction that has begun with a step that shows the token, and what that gave. */
  async #begin<T>(
    resource: string,
    lock: string | undefined,
    step: (tx: Tx) => Promise<T>,
  ): Promise<{ readonly tx: Tx; readonly given: T }> {
    for (let turn = 1; ; turn++) {
      const tx = await this.#open(resource);
      try {
        await this.#database.begin(tx);
        return { tx, given: await step(tx) };
      } catch (error) {
        await this.#giveUp(tx);
        if (hasCode(error, "LOCK_STALE_TOKEN")) {
          throw new LockError(error.code, error.message, { lock, backend: error.backend });
        }
        if (error instanceof LockError) throw error;
        // Two who show a resource's first token at once may meet in a deadlock, which ends one of them.
        if (this.#database.judge(error) !== "again" || turn >= tries) throw this.#failed(resource, error);
      }
    }
  }

  async #commit(tx: Tx, resource: string): Promise<void> {
    let committed: boolean;
    try {
      committed = await this.#database.commit(tx);
    } catch (error) {
      this.#database.release(tx, true);
      const unknown = this.#database.judge(error) === "unknown";
      throw unknown ? this.#unknown(resource, error) : this.#failed(resource, error);
    }
    this.#database.release(tx, false);
    if (!committed) {
      throw this.#failed(resource, new Error("a statement of the work failed, and the work went on"));
    }
  }

  async #open(resource: string): Promise<Tx> {
    try {
      return await this.#database.open();
    } catch (error) {
      throw this.#failed(resource, error);
    }
  }

  async #giveUp(tx: Tx): Promise<void> {
    try {
      await tx.query("ROLLBACK");
      this.#database.release(tx, false);
    } catch {
      // The end of the connection ends the transaction.
      this.#database.release(tx, true);
    }
  }

  /** Nothing was committed. */
  #failed(resource: string, cause: unknown): LockError {
    const { backend } = this.#database;
    const details = { backend, cause };
    if (this.#database.isMissing(cause)) {
      const message = `${backend}: the tables of holdfast are not there: run holdfast migrate --store URL`;
      return new LockError("LOCK_UNSUPPORTED", message, details);
    }
    const message = `${resource} could not be written on ${backend}, and nothing was: ${String(cause)}`;
    return new LockError("LOCK_UNAVAILABLE", message, details);
  }

  #unknown(resource: string, cause: unknown): LockError {
    const { backend } = this.#database;
    const message = `${backend} did not say what became of the write of ${resource}, and it may or may not have happened: ${String(cause)}`;
    return new LockError("LOCK_OUTCOME_UNKNOWN", message, { backend, cause });
  }
}
