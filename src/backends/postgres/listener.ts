/** The one connection on which a client hears from PostgreSQL, opened again whenever it was lost; what it hears is left to others. */
import { systemClock, type Timer } from "../../core/clock.ts";
import type { Ear } from "../../sql/backend.ts";
import { destroy, type PgClient } from "./connection.ts";

/** The shortest and the longest pause before another attempt to connect, in milliseconds. */
const pauseMs = { shortest: 50, longest: 5_000 };

/** Listens on a channel until it is ended. */
export class Listener {
  readonly #open: () => Promise<PgClient | null>;
  readonly #channel: string;
  readonly #ear: Ear;
  readonly #beatMs: number;
  #client: PgClient | null = null;
  #ended = false;
  #failures = 0;
  #timer: Timer | null = null;
  #connecting: Promise<void>;

  /** `open` gives null where listening is of no use: then the client has to look by itself. */
  constructor(open: () => Promise<PgClient | null>, channel: string, ear: Ear, beatMs: number) {
    this.#open = open;
    this.#channel = channel;
    this.#ear = ear;
    this.#beatMs = beatMs;
    this.#connecting = this.#connect();
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#timer?.cancel();
    await this.#connecting;
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    const late = systemClock.after(this.#beatMs, () => destroy(client));
    await client.end().catch(() => destroy(client));
    late.cancel();
  }

  async #connect(): Promise<void> {
    let client: PgClient | null = null;
    try {
      client = await this.#open();
      if (client === null) return;
      if (this.#ended) {
        await client.end();
        return;
      }
      const opened = client;
      opened.on("notification", ({ payload }) => this.#hear(payload));
      opened.on("end", () => this.#lost(opened));
      await this.#inTime(opened, `LISTEN "${this.#channel}"`);
      this.#client = opened;
      this.#failures = 0;
      this.#ear.pushed(true);
      this.#beatLater();
    } catch {
      if (client !== null) destroy(client);
      this.#again();
    }
  }

  #lost(client: PgClient): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#ear.pushed(false);
    this.#again();
  }

  #again(): void {
    if (this.#ended) return;
    const pause = Math.min(pauseMs.longest, pauseMs.shortest * 2 ** this.#failures++);
    this.#timer?.cancel();
    this.#timer = systemClock.after(pause * (0.5 + Math.random()), () => {
      this.#connecting = this.#connect();
    });
  }

  /** A frozen server closes nothing: whoever waits has to ask now and then whether it is still there. */
  #beatLater(): void {
    this.#timer?.cancel();
    this.#timer = systemClock.after(this.#beatMs, () => {
      const client = this.#client;
      if (client === null) return;
      if (!this.#ear.wanted) return this.#beatLater();
      this.#inTime(client, "SELECT 1").then(
        () => this.#client === client && this.#beatLater(),
        () => {
          destroy(client);
          this.#lost(client);
        },
      );
    });
  }

  #inTime(client: PgClient, sql: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = systemClock.after(this.#beatMs, () => reject(new Error("the server does not answer")));
      client
        .query(sql)
        .then(() => resolve(), reject)
        .finally(() => timer.cancel());
    });
  }

  #hear(payload: string | undefined): void {
    const message: unknown = JSON.parse(payload ?? "[]");
    if (!Array.isArray(message) || this.#ended) return;
    const [kind, id, rest] = message;
    if (kind === "wake") this.#ear.wake(String(id), rest);
    else if (kind === "evicted") this.#ear.evicted(String(rest), String(id));
  }
}
