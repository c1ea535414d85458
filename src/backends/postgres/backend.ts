/** PostgreSQL as a database of queues: how it is reached, what it promises, and how it tells; the calls are in ../../sql. */
import type { Finding, Traits } from "../../core/backend.ts";
import type { Database, Ear } from "../../sql/backend.ts";
import type { Session, Verdict } from "../../sql/lane.ts";
import { migrationStepMs, within } from "../../sql/patience.ts";
import { Preparation } from "../../sql/preparation.ts";
import {
  connectTo,
  destroy,
  isDenied,
  isMissing,
  isPooled,
  judge,
  type PgClient,
  sessionOn,
  type Target,
} from "./connection.ts";
import { examine } from "./examine.ts";
import { Listener } from "./listener.ts";
import { applyVersions, currentVersion } from "./migrate.ts";
import { settingsOf } from "./statements.ts";

/** What PostgreSQL promises. */
export const postgresTraits: Traits = {
  scope: "network",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "store",
  tokens: "a committed row per shard, at least the server's clock in microseconds",
  wake: "push",
  exclusivityBrokenBy: ["fail-over", "clock-step"],
  tokensRegressAfter: ["fail-over"],
  callOrder: true,
};

/** One database, as the clients of one backend reach it. */
export class PostgresDatabase implements Database {
  readonly name = "postgres";
  readonly #target: Target;
  readonly #schema: string;
  readonly #deadlineMs: number;
  readonly #preparation: Preparation;
  #pushes = true;

  constructor(target: Target, schema: string, deadlineMs: number, migrate: boolean) {
    this.#target = target;
    this.#schema = schema;
    this.#deadlineMs = deadlineMs;
    this.#preparation = new Preparation({
      backend: this.name,
      called: `the tables of the schema "${schema}"`,
      mayMigrate: migrate,
      migrate: () => this.migrate(),
      isDenied,
      isMissing,
    });
  }

  get traits(): Traits {
    return this.#pushes ? postgresTraits : { ...postgresTraits, wake: "poll" };
  }

  async open(): Promise<Session> {
    const client = await connectTo(this.#target, this.#deadlineMs);
    try {
      const pooled = await this.#inTime(client, () => isPooled(client));
      // What is set through a pooler would stay behind for others.
      if (!pooled) await this.#inTime(client, () => client.query(settingsOf(this.#deadlineMs)));
      const session = sessionOn(client, this.#schema, !pooled);
      return this.#preparation.prepare(session, () => currentVersion(client, this.#schema));
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  judge(error: unknown): Verdict {
    return judge(error);
  }

  listen(channel: string, ear: Ear): () => Promise<void> {
    const listener = new Listener(() => this.#openListening(), channel, ear, this.#deadlineMs);
    return () => listener.end();
  }

  async examine(): Promise<readonly Finding[]> {
    const client = await connectTo(this.#target, this.#deadlineMs);
    try {
      return await this.#inTime(client, () => examine(client, this.#schema));
    } finally {
      await this.#inTime(client, () => client.end());
    }
  }

  /** Applies the versions of the schema that are missing, and gives their numbers. */
  async migrate(): Promise<readonly number[]> {
    const client = await connectTo(this.#target, this.#deadlineMs);
    const inTime = <T>(step: () => Promise<T>): Promise<T> =>
      within(migrationStepMs(this.#deadlineMs), () => destroy(client), step);
    try {
      return await applyVersions(client, this.#schema, inTime);
    } finally {
      await this.#inTime(client, () => client.end());
    }
  }

  /** A connection to listen on; null behind a pooler that gives each transaction another server process. */
  async #openListening(): Promise<PgClient | null> {
    const client = await connectTo(this.#target, this.#deadlineMs);
    if (!(await this.#inTime(client, () => this.#isSwapped(client)))) return client;
    await this.#inTime(client, () => client.end());
    if (this.#pushes) {
      this.#pushes = false;
      const text =
        "PostgreSQL is behind a pooler in transaction mode, where nobody can LISTEN: waiters poll instead. Give a direct URL for push.";
      process.emitWarning(text, { code: "HOLDFAST_POLLING" });
    }
    return null;
  }

  #inTime<T>(client: PgClient, work: () => Promise<T>): Promise<T> {
    return within(this.#deadlineMs, () => destroy(client), work);
  }

  /** Whether a pooler serves two connections by the same process of the server, which no session mode does. */
  async #isSwapped(client: PgClient): Promise<boolean> {
    if (!(await isPooled(client))) return false;
    const other = await connectTo(this.#target, this.#deadlineMs);
    return this.#inTime(other, () => this.#isShared(client, other));
  }

  async #isShared(client: PgClient, other: PgClient): Promise<boolean> {
    try {
      const pids: [Set<unknown>, Set<unknown>] = [new Set(), new Set()];
      for (let round = 0; round < 3; round++) {
        for (const [index, each] of [client, other].entries()) {
          const { rows } = await each.query("SELECT pg_backend_pid() AS pid");
          pids[index === 0 ? 0 : 1].add(rows[0]?.pid);
        }
      }
      const [own, others] = pids;
      return own.size > 1 || others.size > 1 || [...own].some((pid) => others.has(pid));
    } finally {
      await other.end();
    }
  }
}
