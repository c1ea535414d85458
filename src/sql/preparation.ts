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
      if (!this.#done && (await this.#isEmpty(verb, currentVersion)))
        return requests.map(() => nothing[verb]);
      return call(verb, requests);
    };
    return session;
  }

  async #isEmpty(verb: Verb, currentVersion: () => Promise<number>): Promise<boolean> {
    let version = await currentVersion();
    if (version < schemaVersion && this.#tables.mayMigrate) {
      if (version === 0 && verb !== "append") return true;
      // Goes on even if the call that began it does not wait for its end.
      this.#migrating ??= this.#tables.migrate().finally(() => {
        this.#migrating = null;
      });
      await this.#migrating;
      version = await currentVersion();
    }
    this.#assert(version);
    this.#done = true;
    return false;
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
