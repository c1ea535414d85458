/** Sees to it that the tables are there before the first call that needs them; creating them is left to each database. */
import { LockError } from "../core/errors.ts";
import type { Session } from "./lane.ts";
import type { Verb } from "./wire.ts";

/** The version of the tables and routines that this package works with. */
export const schemaVersion = 1;

/** What a database knows about its tables. */
export interface Tables {
  /** The name of the backend, for messages. */
  readonly backend: string;
  /** How people call the tables. */
  readonly called: string;
  /** Whether they may be created when they are first needed. */
  readonly mayMigrate: boolean;
  /** Creates what is missing, on a connection of its own. */
  migrate(): Promise<unknown>;
  /** Whether an error says that this user may not create them. */
  isDenied(error: unknown): boolean;
  /** Whether an error says that they are not there. */
  isMissing(error: unknown): boolean;
}

/** What is done before the first call: once for all connections of a client. */
export class Preparation {
  readonly #tables: Tables;
  #done = false;
  #migrating: Promise<unknown> | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** A connection whose calls find the tables there. Nothing is created for those who only look: where nothing is, they find nothing. */
  prepare(session: Session, currentVersion: () => Promise<number>): Session {
    const call = session.call.bind(session);
    session.call = async (verb, requests) => {
      const answers = async (): Promise<readonly unknown[]> =>
        !this.#done && (await this.#isEmpty(verb, currentVersion))
          ? requests.map(() => nothing[verb])
          : call(verb, requests);
      try {
        return await answers();
      } catch (error) {
        if (!this.#tables.isMissing(error)) throw error;
        // Somebody has dropped them since.
        this.#done = false;
        return answers();
      }
    };
    return session;
  }

  async #isEmpty(verb: Verb, currentVersion: () => Promise<number>): Promise<boolean> {
    let version = await currentVersion();
    if (version < schemaVersion && this.#tables.mayMigrate) {
      if (version === 0 && verb !== "append") return true;
      // Goes on even if the call that began it does not wait for its end.
      this.#migrating ??= this.#tables
        .migrate()
        .catch((error: unknown) => this.#fail(error))
        .finally(() => {
          this.#migrating = null;
        });
      await this.#migrating;
      version = await currentVersion();
    }
    this.#assert(version);
    this.#done = true;
    return false;
  }

  #fail(error: unknown): never {
    if (!this.#tables.isDenied(error)) throw error;
    const { backend, called } = this.#tables;
    const message = `${backend}: ${called} are not there or not up to date, and this user may not see to it: run, as one who may: holdfast migrate --store URL (${String(error)})`;
    throw new LockError("LOCK_UNSUPPORTED", message, { backend, cause: error });
  }

  #assert(version: number): void {
    if (version === schemaVersion) return;
    const { backend, called } = this.#tables;
    const what =
      version === 0 ? "not there" : `of version ${version}, and this holdfast needs ${schemaVersion}`;
    const todo = version > schemaVersion ? "update holdfast" : "run: holdfast migrate --store URL";
    throw new LockError("LOCK_UNSUPPORTED", `${backend}: ${called} are ${what}; ${todo}`, { backend });
  }
}

/** What those who look find where nothing is. */
const nothing: Readonly<Record<Verb, unknown>> = {
  append: null,
  flush: true,
  remove: false,
  renew: null,
  look: null,
  list: [],
  queues: [],
  sweep: 0,
  evictions: [],
};
