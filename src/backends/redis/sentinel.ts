/**
 * A Link over node-redis to the primary that Sentinels name: one connection at a time, made anew when it ends. The
 * library's own Sentinel client is not used, since it sends what a fail-over has interrupted once more.
 */
import { asText, type Link, type Listener, type Listening } from "./link.ts";
import { type NodeRedisClient, NodeRedisLink } from "./node-redis.ts";

/** Where a server is. */
interface Place {
  readonly host: string;
  readonly port: number;
}

/** Follows one primary. */
export class SentinelLink implements Link {
  readonly library = "node-redis";
  readonly cluster = false;
  readonly inOrder = true;
  lastError: unknown = null;
  readonly #sentinels: readonly (() => NodeRedisClient)[];
  readonly #primary: string;
  readonly #open: (place: Place) => NodeRedisClient;
  readonly #patienceMs: number;
  #client: NodeRedisClient | null = null;
  #link: NodeRedisLink | null = null;
  #onReady: (() => void) | null = null;
  #attempts = 0;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** `open` makes a client that ends with its connection; each server has `patienceMs` to answer. */
  constructor(
    sentinels: readonly (() => NodeRedisClient)[],
    primary: string,
    open: (place: Place) => NodeRedisClient,
    patienceMs: number,
  ) {
    this.#sentinels = sentinels;
    this.#primary = primary;
    this.#open = open;
    this.#patienceMs = patienceMs;
  }

  get isReady(): boolean {
    return this.#link?.isReady === true;
  }

  canSend(): boolean {
    return this.isReady;
  }

  start(onReady: () => void): void {
    if (this.#onReady !== null) return;
    this.#onReady = onReady;
    void this.#follow();
  }

  send(command: string, args: readonly string[]): Promise<unknown> {
    return this.#now().send(command, args);
  }

  sendToAll(command: string, args: readonly string[]): Promise<readonly unknown[]> {
    return this.#now().sendToAll(command, args);
  }

  sendTo(_node: number, command: string, args: readonly string[]): Promise<unknown> {
    return this.#now().send(command, args);
  }

  nodeOf(): undefined {
    return undefined;
  }

  seek(): void {}

  listen(listener: Listener): Listening {
    return this.#now().listen(listener);
  }

  #now(): NodeRedisLink {
    if (this.#link === null) throw new Error("no primary is known");
    return this.#link;
  }

  reconnect(): void {
    if (this.#client !== null) this.#lost(this.#client, null);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#link?.close();
    this.#client = null;
  }

  async #follow(): Promise<void> {
    this.#timer = null;
    let client: NodeRedisClient | null = null;
    try {
      const made = this.#open(await this.#resolve());
      client = made;
      made.on("error", (error) => this.#lost(made, error));
      made.on("end", () => this.#lost(made, null));
      await this.#inTime(made.connect());
      if (this.#closed) return void made.destroy();
      this.#client = made;
      this.#link = new NodeRedisLink(made, true);
      this.#attempts = 0;
      this.#onReady?.();
    } catch (error) {
      this.lastError = error;
      if (client?.isOpen) client.destroy();
      this.#later();
    }
  }

  #lost(client: NodeRedisClient, error: unknown): void {
    if (error !== null) this.lastError = error;
    if (this.#client !== client) return;
    this.#client = null;
    if (client.isOpen) client.destroy();
    this.#later();
  }

  #later(): void {
    if (this.#closed || this.#timer !== null) return;
    this.#attempts += 1;
    const delayMs = Math.min(25 * 2 ** Math.min(this.#attempts, 5), 500);
    this.#timer = setTimeout(() => void this.#follow(), delayMs);
    this.#timer.unref();
  }

  /** Asks the Sentinels, one after the other, where the primary is. */
  async #resolve(): Promise<Place> {
    let failure: unknown = new Error(`no Sentinel knows ${JSON.stringify(this.#primary)}`);
    for (const make of this.#sentinels) {
      const sentinel = make();
      sentinel.on("error", () => {});
      try {
        await this.#inTime(sentinel.connect());
        const question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.#primary];
        const answer = await this.#inTime(sentinel.sendCommand(question));
        const [host, port]: unknown[] = Array.isArray(answer) ? answer : [];
        if (host !== undefined) return { host: asText(host), port: Number(asText(port)) };
      } catch (error) {
        failure = error;
      } finally {
        if (sentinel.isOpen) sentinel.destroy();
      }
    }
    throw failure;
  }

  /** A server that stands still takes a connection, and then says nothing for ever. */
  #inTime<T>(step: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = new Error(`a server that was asked has not answered within ${this.#patienceMs} ms`);
      const timer = setTimeout(() => reject(late), this.#patienceMs);
      void step.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}
