/** MySQL and MariaDB as a database of queues: how it is reached and what it promises; the calls are in ../../sql. */
import type { Finding, Traits } from "../../core/backend.ts";
import type { Database } from "../../sql/backend.ts";
import type { Session, Verdict } from "../../sql/lane.ts";
import { migrationStepMs, within } from "../../sql/patience.ts";
import { Preparation } from "../../sql/preparation.ts";
import {
  connectTo,
  isDenied,
  isMissing,
  judge,
  type MysqlConnection,
  sessionOn,
  type Target,
} from "./connection.ts";
import { examine } from "./examine.ts";
import { applyVersions, currentVersion } from "./migrate.ts";
import { settingsOf } from "./statements.ts";

/** What MySQL and MariaDB promise. */
export const mysqlTraits: Traits = {
  scope: "network",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "store",
  tokens: "a committed row per shard, at least the server's clock in microseconds",
  wake: "poll",
  exclusivityBrokenBy: ["fail-over", "clock-step"],
  tokensRegressAfter: ["fail-over"],
  callOrder: true,
};

/** One database, as the clients of one backend reach it. */
export class MysqlDatabase implements Database {
  readonly name = "mysql";
  readonly traits: Traits = mysqlTraits;
  readonly #target: Target;
  readonly #prefix: string;
  readonly #deadlineMs: number;
  readonly #preparation: Preparation;

  constructor(target: Target, prefix: string, deadlineMs: number, migrate: boolean) {
    this.#target = target;
    this.#prefix = prefix;
    this.#deadlineMs = deadlineMs;
    this.#preparation = new Preparation({
      backend: this.name,
      called: `the tables ${prefix}…`,
      mayMigrate: migrate,
      migrate: () => this.migrate(),
      isDenied,
      isMissing,
    });
  }

  async open(): Promise<Session> {
    const connection = await this.#connect();
    const session = sessionOn(connection, this.#prefix);
    return this.#preparation.prepare(session, () => currentVersion(connection, this.#prefix));
  }

  judge(error: unknown): Verdict {
    return judge(error);
  }

  async examine(): Promise<readonly Finding[]> {
    const connection = await this.#connect();
    try {
      return await this.#inTime(connection, () => examine(connection, this.#prefix));
    } finally {
      await this.#end(connection);
    }
  }

  /** Applies the versions of the schema that are missing, and gives their numbers. */
  async migrate(): Promise<readonly number[]> {
    const connection = await this.#connect();
    const inTime = <T>(step: () => Promise<T>): Promise<T> =>
      within(migrationStepMs(this.#deadlineMs), () => connection.destroy(), step);
    try {
      return await applyVersions(connection, this.#prefix, inTime);
    } finally {
      await this.#end(connection);
    }
  }

  async #connect(): Promise<MysqlConnection> {
    const connection = await connectTo(this.#target, this.#deadlineMs);
    try {
      await this.#inTime(connection, async () => {
        for (const setting of settingsOf(this.#deadlineMs)) await connection.query(setting);
      });
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  #inTime<T>(connection: MysqlConnection, work: () => Promise<T>): Promise<T> {
    return within(this.#deadlineMs, () => connection.destroy(), work);
  }

  async #end(connection: MysqlConnection): Promise<void> {
    await this.#inTime(connection, () => connection.end()).catch(() => connection.destroy());
  }
}
