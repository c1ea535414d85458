/** What the backend needs of a client library: commands on one connection, disposable connections to listen on, and no more. */

/** A word of a command: text, or bytes that are no text. */
export type Word = string | Buffer;

/** Where a link may keep what it has written, for the next time that the same command and words are sent. */
export interface Kept {
  bytes: Buffer | null;
}

/** A connection to a server, a pair watched by Sentinel, or a cluster. */
export interface Link {
  readonly library: "ioredis" | "node-redis";
  readonly cluster: boolean;
  /** Whether commands take effect in the order in which they are sent. */
  readonly inOrder: boolean;
  /** Whether there is a connection now. */
  readonly isReady: boolean;
  /** Whether a command for this key can be sent now. */
  canSend(key: string): boolean;
  /** The last thing that went wrong with the connection, for messages; null if nothing has. */
  readonly lastError: unknown;
  /** Begins to connect if nobody has, and calls back each time that commands can be sent again, and when they cannot. */
  start(onReady: () => void, onDown?: () => void): void;
  /** Sends a command; on a cluster, to the node that has the key. Rejects with the library's error. `kept` belongs to these very words. */
  send(command: string, args: readonly Word[], key?: string, kept?: Kept): Promise<unknown>;
  /** Sends a command to each node that has data: one, but for a cluster. */
  sendToAll(command: string, args: readonly string[]): Promise<readonly unknown[]>;
  /** Sends a command to one of them, by its place in the answers of sendToAll. */
  sendTo(node: number, command: string, args: readonly string[]): Promise<unknown>;
  /** The node of a cluster that has a slot, as far as the library knows; undefined if it does not. */
  nodeOf(slot: number): string | undefined;
  /** Asks a cluster anew who has which slot, since the node that is taken to have this one is away or does not answer. */
  seek(slot: number): void;
  /** Opens a connection of its own to listen on; on a cluster to the node that has the slot, or to any. */
  listen(listener: Listener, slot?: number): Listening;
  /** Gives up a connection that does not answer, where it is ours. */
  reconnect(): void;
  /** Ends what was opened here; a client that was handed in stays open. */
  close(): Promise<void>;
}

/** Who listens on a connection. */
export interface Listener {
  readonly onMessage: (message: string, channel: string) => void;
  /** The connection has ended, for good, or the server has ended a subscription; called once at most. */
  readonly onDown: (cause: unknown) => void;
}

/** A connection that listens until it ends. */
export interface Listening {
  /** Resolves when messages on the channel surely arrive. */
  subscribe(channel: string): Promise<void>;
  /** Ends what subscribe began. */
  unsubscribe(channel: string): Promise<void>;
  /** The same for a sharded channel. It may never settle where the slot is on another node. */
  subscribeSharded(channel: string): Promise<void>;
  unsubscribeSharded(channel: string): Promise<void>;
  /** Resolves if the server still answers on this connection. */
  ping(): Promise<void>;
  close(): void;
}

/** A function of a library's object, whatever its arguments. */
type AnyFunction = (...args: never[]) => unknown;

/** Whether an object has functions of these names. */
export function can(client: object, ...names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(client, name) === "function");
}

/** A property of an object of a library; undefined if either is missing. */
export function property(of: unknown, ...path: readonly string[]): unknown {
  let value = of;
  for (const name of path) {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** A reply as text, however the client was told to give it. */
export function asText(reply: unknown): string {
  if (typeof reply === "string") return reply;
  if (typeof reply === "number" || typeof reply === "bigint") return String(reply);
  return Buffer.isBuffer(reply) ? reply.toString() : "";
}

/** Whether a value is an object of a library. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Whether a value is a function. */
export function isFunction(value: unknown): value is AnyFunction {
  return typeof value === "function";
}
