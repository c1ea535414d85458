/** A Link over ioredis 5 or 6: one server, Sentinel or Cluster. */
import { invalid } from "../../core/errors.ts";
import { listenTo, stopListening } from "./events.ts";
import { slotOf } from "./keys.ts";
import {
  can,
  isFunction,
  isObject,
  type Kept,
  type Link,
  type Listener,
  type Listening,
  property,
  type Word,
} from "./link.ts";

/** What is used of an ioredis client. */
export interface IoredisClient {
  readonly status: string;
  call(command: string, ...args: unknown[]): Promise<unknown>;
  connect(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  duplicate(...overrides: unknown[]): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** What it has besides while it is connected. */
interface Connected {
  readonly stream?: { readonly writable?: boolean } | null | undefined;
}

interface IoredisCluster extends IoredisClient {
  nodes(role: "all" | "master"): readonly IoredisClient[];
}

/** Options of a connection of our own: nothing is queued while it is down, and nothing is sent twice. */
export const ownIoredisOptions: Readonly<Record<string, unknown>> = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  // A server that stands still does not end the connection that is given up.
  disconnectTimeout: 50,
};

/** The same for a cluster. */
export const ownIoredisClusterOptions: Readonly<Record<string, unknown>> = {
  lazyConnect: true,
  enableOfflineQueue: false,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  // It asks any node, and waits for one that stands still.
  enableReadyCheck: false,
};

/** Whether this is a client of ioredis. */
export function isIoredis(client: object): client is IoredisClient {
  return (
    typeof property(client, "status") === "string" && can(client, "call", "duplicate", "disconnect", "on")
  );
}

/** One that is being given up is called ready until its connection has ended, but takes nothing. */
function isUp({ status, stream }: IoredisClient & Connected): boolean {
  return status === "ready" && stream?.writable !== false;
}

function isCluster(client: IoredisClient): client is IoredisCluster {
  return property(client, "isCluster") === true && can(client, "nodes");
}

/** Refuses a client that would send an append again, or long after its caller has gone. */
export function checkIoredis(client: IoredisClient): void {
  const cluster = isCluster(client);
  const own = (name: string): unknown => property(client, "options", name);
  const ofNodes = (name: string): unknown => property(client, "options", "redisOptions", name);
  const wrong: string[] = [];
  if (own("enableOfflineQueue") !== false) wrong.push("enableOfflineQueue: false");
  if (cluster && own("retryDelayOnFailover") !== 0) wrong.push("retryDelayOnFailover: 0");
  if ((cluster ? ofNodes : own)("autoResendUnfulfilledCommands") !== false) {
    wrong.push(
      cluster
        ? "redisOptions: { autoResendUnfulfilledCommands: false }"
        : "autoResendUnfulfilledCommands: false",
    );
  }
  if (wrong.length > 0) {
    throw invalid(
      `this ioredis client may send a request long after its caller has gone: make it with { ${wrong.join(", ")} }`,
      { backend: "redis" },
    );
  }
  if (own("keyPrefix") || ofNodes("keyPrefix")) {
    throw invalid("this ioredis client has a keyPrefix: give the backend a prefix instead", {
      backend: "redis",
    });
  }
}

/** A Link over an ioredis client; `ours` if it was made here. */
export class IoredisLink implements Link {
  readonly library = "ioredis";
  readonly cluster: boolean;
  readonly inOrder: boolean;
  lastError: unknown = null;
  readonly #client: IoredisClient;
  readonly #ours: boolean;
  readonly #onError = (error: unknown): void => {
    this.lastError = error;
  };
  readonly #onNodeReady = (): void => {
    if (this.isReady) this.#onReady?.();
  };
  readonly #onNode = (node: unknown): void => {
    if (!isObject(node) || !isIoredis(node)) return;
    listenTo(node, "ready", this.#onNodeReady);
    if (this.isReady) this.#connect(node);
  };
  readonly #connectAll = (): void => {
    for (const node of this.#nodes()) this.#connect(node);
  };
  /** One of ours that was given up while it asked its Sentinels has ended: it begins anew. */
  readonly #onEnd = (): void => {
    this.#isLeaving = false;
    if (this.#onReady !== null) this.#client.connect().catch(this.#onError);
  };
  /** Whether a connection was given up that has not closed yet: a server that stands still takes its time for that. */
  #isLeaving = false;
  readonly #onClose = (): void => {
    this.#isLeaving = false;
    rejectUnanswered(this.#client);
  };
  #onReady: (() => void) | null = null;
  #onDown: (() => void) | null = null;
  readonly #written: SendWritten | null;

  constructor(client: IoredisClient, ours: boolean) {
    this.#client = client;
    this.#written = sendWritten(client);
    this.#ours = ours;
    this.cluster = isCluster(client);
    this.inOrder = !this.cluster;
  }

  /**
   * Nodes would connect when they are first needed, but what is sent to one by ASK before is lost: they connect at once. But
   * not before the cluster is ready: while it looks for its nodes, it can stall for seconds if they connect meanwhile.
   */
  #connect(node: IoredisClient): void {
    if (node.status === "wait" && property(node, "options", "readOnly") !== true)
      node.connect().catch(this.#onError);
  }

  get isReady(): boolean {
    return isUp(this.#client);
  }

  /** A node of a cluster takes nothing until it is connected. */
  canSend(key: string): boolean {
    const { isReady } = this;
    if (!isReady || !this.cluster) return isReady;
    const node = this.#nodeAt(slotOf(key));
    if (node?.status === "wait") node.connect().catch(this.#onError);
    return node !== undefined && isUp(node);
  }

  seek(): void {
    const refresh = property(this.#client, "refreshSlotsCache");
    if (this.isReady && isFunction(refresh)) Reflect.apply(refresh, this.#client, [() => {}]);
  }

  start(onReady: () => void, onDown: () => void = () => {}): void {
    this.#onReady = onReady;
    this.#onDown = onDown;
    listenTo(this.#client, "ready", onReady);
    listenTo(this.#client, "close", onDown);
    listenTo(this.#client, "close", this.#onClose);
    if (this.cluster) {
      listenTo(this.#client, "ready", this.#connectAll);
      listenTo(this.#client, "+node", this.#onNode);
      for (const node of this.#nodes()) this.#onNode(node);
    }
    if (this.#ours) {
      listenTo(this.#client, "error", this.#onError);
      listenTo(this.#client, "end", this.#onEnd);
    }
    if (this.#client.status !== "wait") return;
    this.#client.connect().catch(this.#onError);
  }

  send(command: string, args: readonly Word[], key?: string, kept?: Kept): Promise<unknown> {
    // These have no key of their own, but follow what was sent to its node.
    const follows = this.cluster && key !== undefined && command.startsWith("WAIT");
    const node = follows ? this.#nodeAt(slotOf(key)) : undefined;
    const name = command.toLowerCase();
    return this.#written?.(name, args, kept) ?? (node ?? this.#client).call(name, args);
  }

  nodeOf(slot: number): string | undefined {
    const owners = property(this.#client, "slots", String(slot));
    const address: unknown = Array.isArray(owners) ? owners[0] : undefined;
    return typeof address === "string" ? address : undefined;
  }

  #nodeAt(slot: number): IoredisClient | undefined {
    const address = this.nodeOf(slot);
    return this.#nodes().find(
      (node) =>
        `${String(property(node, "options", "host"))}:${String(property(node, "options", "port"))}` ===
        address,
    );
  }

  sendToAll(command: string, args: readonly string[]): Promise<readonly unknown[]> {
    return Promise.all(this.#nodes().map((node) => node.call(command.toLowerCase(), args)));
  }

  sendTo(node: number, command: string, args: readonly string[]): Promise<unknown> {
    return (this.#nodes()[node] ?? this.#client).call(command.toLowerCase(), args);
  }

  #nodes(): readonly IoredisClient[] {
    return isCluster(this.#client) ? this.#client.nodes("master") : [this.#client];
  }

  listen(listener: Listener, slot?: number): Listening {
    // On a cluster any node does for plain channels: it forwards what is published on another.
    const nodes = this.#nodes();
    const any = nodes[Math.floor(Math.random() * nodes.length)] ?? this.#client;
    const node = slot === undefined ? any : this.#nodeAt(slot);
    if (node === undefined) throw new Error(`no node of the cluster is known to have slot ${slot}`);
    const client = node.duplicate({
      lazyConnect: true,
      enableOfflineQueue: true,
      autoResubscribe: false,
      readOnly: false,
      retryStrategy: null,
      sentinelRetryStrategy: null,
      maxRetriesPerRequest: 0,
    });
    if (!isObject(client) || !isIoredis(client)) throw invalid("this client cannot be duplicated");
    return listenWith(client, listener);
  }

  reconnect(): void {
    // One that is about to connect does so anyway; one that hangs in its handshake would do so for ever.
    const { status } = this.#client;
    if (!this.#ours || this.#isLeaving || !["connecting", "connect", "ready"].includes(status)) return;
    this.#isLeaving = true;
    this.#client.disconnect(true);
  }

  async close(): Promise<void> {
    if (this.#onReady !== null) stopListening(this.#client, "ready", this.#onReady);
    if (this.#onDown !== null) stopListening(this.#client, "close", this.#onDown);
    stopListening(this.#client, "close", this.#onClose);
    stopListening(this.#client, "ready", this.#connectAll);
    stopListening(this.#client, "+node", this.#onNode);
    if (isCluster(this.#client))
      for (const node of this.#client.nodes("all")) stopListening(node, "ready", this.#onNodeReady);
    this.#onReady = null;
    if (this.#ours) this.#client.disconnect();
  }
}

/** Sends a command that was written here; null if a word of it is no text. */
type SendWritten = (name: string, words: readonly Word[], kept?: Kept) => Promise<unknown> | null;

/**
 * The library copies the words of a command one by one and looks at each of them twice before it writes them, which takes longer
 * than what we do for a call; so it is given commands that need only be sent. Null where it does not take them.
 */
function sendWritten(client: IoredisClient): SendWritten | null {
  const call = property(client, "call");
  const sendCommand = property(client, "sendCommand");
  if (isCluster(client) || !isFunction(call) || !isFunction(sendCommand)) return null;
  // Called on this, it makes a command and gives it to us instead of sending it.
  const maker = { options: {}, sendCommand: (command: unknown) => command };
  const probe: unknown = Reflect.apply(call, maker, ["ping"]);
  if (!isObject(probe) || !can(probe, "toWritable") || !Array.isArray(property(probe, "args"))) return null;
  const Command: unknown = probe.constructor;
  if (!isCommandClass(Command)) return null;
  const options = { replyEncoding: "utf8" };
  return (name, words, kept) => {
    const write = writer(name, words, kept);
    if (write === null) return null;
    const command = new Command(name, [], options);
    // Its words are still what its errors and traces show.
    command.args = words;
    command.toWritable = write;
    return Promise.resolve(Reflect.apply(sendCommand, client, [command]));
  };
}

/** Writes a command when the library asks for it; null if a word of it is no text. What has been kept is not looked at again. */
function writer(name: string, words: readonly Word[], kept?: Kept): (() => string | Buffer) | null {
  const bytes = kept?.bytes;
  if (bytes) return () => bytes;
  if (!words.every(isText)) return null;
  if (kept === undefined) return () => writeCommand(name, words);
  return () => (kept.bytes ??= Buffer.from(writeCommand(name, words)));
}

/**
 * Rejects what was written here and not answered when the connection ended. The library drops it without a word where it may not send it
 * again, unless the client was made with maxRetriesPerRequest: 0.
 */
function rejectUnanswered(client: IoredisClient): void {
  const queue = property(client, "commandQueue");
  const toArray = property(queue, "toArray");
  const items: unknown = isFunction(toArray) ? Reflect.apply(toArray, queue, []) : [];
  if (!Array.isArray(items)) return;
  for (const item of items) {
    const command = property(item, "command");
    const reject = property(command, "reject");
    if (isObject(command) && Object.hasOwn(command, "toWritable") && isFunction(reject))
      Reflect.apply(reject, command, [new Error("Connection is closed.")]);
  }
}

/** A command of the library, as far as it is made here. */
interface Command {
  args: readonly Word[];
  toWritable: () => string | Buffer;
}

function isCommandClass(
  value: unknown,
): value is new (name: string, args: readonly Word[], options: object) => Command {
  return isFunction(value) && value !== Object;
}

/** What comes before a word of so many bytes. */
const heads: readonly string[] = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`);

function isText(word: Word): word is string {
  return typeof word === "string";
}

/** A command as a server reads it. */
export function writeCommand(name: string, words: readonly string[]): string {
  const plain = writeWords(name, words, false);
  // Counting the bytes of each word would take longer than all the rest, and most commands have no character of more than one.
  return Buffer.byteLength(plain) === plain.length ? plain : writeWords(name, words, true);
}

function writeWords(name: string, words: readonly string[], counted: boolean): string {
  let text = `*${words.length + 1}\r\n$${name.length}\r\n${name}`;
  for (const word of words) {
    const length = counted ? Buffer.byteLength(word) : word.length;
    text += (heads[length] ?? `\r\n$${length}\r\n`) + word;
  }
  return `${text}\r\n`;
}

function listenWith(client: IoredisClient, { onMessage, onDown }: Listener): Listening {
  let lastError: unknown = null;
  let open = true;
  const down = (cause: unknown): void => {
    if (open) onDown(cause);
    open = false;
  };
  const hear = (channel: unknown, message: unknown): void => {
    if (open) onMessage(String(message), String(channel));
  };
  // Version 5 has no other word for an answer that it did not wait for, as when a slot was taken away.
  client.on("error", (error) => {
    lastError = error;
    if (client.status === "ready") down(error);
  });
  client.on("message", hear);
  client.on("smessage", hear);
  client.on("moved", () => down(new Error("the slot of a channel has moved")));
  client.on("end", () => down(lastError));
  const send = async (command: string, ...args: readonly string[]): Promise<void> => {
    await client.call(command, ...args);
  };
  return {
    subscribe: (channel) => send("subscribe", channel),
    unsubscribe: (channel) => send("unsubscribe", channel),
    subscribeSharded: (channel) => send("ssubscribe", channel),
    unsubscribeSharded: (channel) => send("sunsubscribe", channel),
    ping: () => send("ping"),
    close: () => {
      open = false;
      client.disconnect();
    },
  };
}
