/** A Link over node-redis 5 or 6: one server or Cluster. Sentinels are followed in sentinel.ts. */
import { invalid } from "../../core/errors.ts";
import { listenTo, stopListening } from "./events.ts";
import { slotOf } from "./keys.ts";
import {
  can,
  isFunction,
  isObject,
  type Link,
  type Listener,
  type Listening,
  property,
  type Word,
} from "./link.ts";

/** What is used of a client of node-redis, of one server or a cluster. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  sendCommand(...args: unknown[]): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface OneServer extends NodeRedisClient {
  readonly isReady: boolean;
  duplicate(overrides?: object): unknown;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  sSubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  sUnsubscribe(channel: string): Promise<unknown>;
  ping(): Promise<unknown>;
}

interface Cluster extends NodeRedisClient {
  readonly masters: readonly object[];
  nodeClient(node: object): unknown;
}

/** Options of a connection of our own: nothing is queued while it is down. */
export const ownNodeRedisOptions: { readonly disableOfflineQueue: true } = { disableOfflineQueue: true };

/** Whether this is a client of node-redis. */
export function isNodeRedis(client: object): client is NodeRedisClient {
  return (
    typeof property(client, "isOpen") === "boolean" && can(client, "sendCommand", "connect", "destroy", "on")
  );
}

function isCluster(client: NodeRedisClient): client is Cluster {
  return can(client, "nodeClient") && Array.isArray(property(client, "masters"));
}

function isOneServer(client: NodeRedisClient): client is OneServer {
  return (
    can(client, "duplicate", "subscribe", "unsubscribe", "sSubscribe", "sUnsubscribe", "ping") &&
    !can(client, "execute") &&
    !can(client, "acquire")
  );
}

/** Whether commands can be sent to a client one by one: that of a Sentinel and pools take them otherwise. */
export function takesCommands(client: NodeRedisClient): boolean {
  return isCluster(client) || isOneServer(client);
}

/** Refuses a client that would send an append long after its caller has gone. */
export function checkNodeRedis(client: NodeRedisClient): void {
  const cluster = isCluster(client);
  if (!takesCommands(client)) {
    throw invalid(
      "give a client of node-redis made by createClient or createCluster: one made by createSentinel sends " +
        "interrupted requests again (give a redis+sentinel:// url instead), and a pool keeps no order",
      { backend: "redis" },
    );
  }
  const options = property(client, cluster ? "_options" : "options");
  const own = cluster ? property(options, "defaults") : options;
  if (property(own, "disableOfflineQueue") !== true) {
    const wanted = cluster ? "{ defaults: { disableOfflineQueue: true } }" : "{ disableOfflineQueue: true }";
    throw invalid(
      `this node-redis client may send a request long after its caller has gone: make it with ${wanted}`,
      { backend: "redis" },
    );
  }
  if (property(own, "keyPrefix") || property(options, "keyPrefix")) {
    throw invalid("this node-redis client has a keyPrefix: give the backend a prefix instead", {
      backend: "redis",
    });
  }
}

/** How long it is until nodes of a cluster are looked at again, at most, in milliseconds. */
const longestDelayMs = 500;

/** What a client emits when its connection has ended, before it makes a new one. */
const downEvents = ["reconnecting", "end"];

/** A Link over a client of node-redis; `ours` if it was made here. */
export class NodeRedisLink implements Link {
  readonly library = "node-redis";
  readonly cluster: boolean;
  readonly inOrder: boolean;
  lastError: unknown = null;
  readonly #client: NodeRedisClient;
  readonly #ours: boolean;
  #onReady: (() => void) | null = null;
  #onDown: (() => void) | null = null;
  /** Whether it has been connected to all nodes of a cluster once, or has waited for that long enough. */
  #hasMet = false;
  readonly #onError = (error: unknown): void => {
    // A cluster that found no node says only that; what the last one said came before.
    const isSum = property(error, "message") === "All the root nodes are unavailable";
    if (!isSum || this.lastError === null) this.lastError = error;
  };

  constructor(client: NodeRedisClient, ours: boolean) {
    this.#client = client;
    this.#ours = ours;
    this.cluster = isCluster(client);
    this.inOrder = !this.cluster;
  }

  get isReady(): boolean {
    if (!isCluster(this.#client)) return property(this.#client, "isReady") === true;
    const { isOpen, masters } = this.#client;
    if (!isOpen || masters.length === 0) return false;
    // A cluster is open before it has connected to its nodes. Later on one that is away does not stand in the way of the others.
    this.#hasMet ||= masters.every((node) => property(node, "client", "isReady") !== false);
    return this.#hasMet;
  }

  canSend(key: string): boolean {
    if (!this.isReady || !this.cluster) return this.isReady;
    const master = property(this.#client, "slots", String(slotOf(key)), "master");
    // One that has not been connected yet is when it is needed.
    return (
      isObject(master) &&
      (property(master, "client", "isReady") !== false || property(master, "connectPromise") !== undefined)
    );
  }

  /** The library asks by itself only when a node says that a slot has moved, which one that is away does not. */
  seek(slot: number): void {
    const client = this.#client;
    const known = property(client, "_slots");
    if (!isCluster(client) || !isObject(known)) return;
    const away = property(client, "slots", String(slot), "master");
    const other = client.masters.find(
      (node) => node !== away && property(node, "client", "isReady") === true,
    );
    const rediscover = property(known, "rediscover");
    if (other === undefined || !isFunction(rediscover)) return;
    Promise.resolve(Reflect.apply(rediscover, known, [property(other, "client")])).catch(this.#onError);
  }

  start(onReady: () => void, onDown: () => void = () => {}): void {
    this.#onReady = onReady;
    this.#onDown = onDown;
    listenTo(this.#client, "ready", onReady);
    for (const event of downEvents) listenTo(this.#client, event, onDown);
    if (this.#ours) listenTo(this.#client, "error", this.#onError);
    if (!this.#client.isOpen) this.#connect();
    if (this.cluster && !this.isReady) this.#awaitNodes(10);
  }

  #connect(): void {
    this.#client.connect().then(() => this.isReady && this.#onReady?.(), this.#onError);
  }

  /** A cluster that is connecting has no event for it in version 5, and one that finds no node gives up. */
  #awaitNodes(delayMs: number): void {
    const timer = setTimeout(() => {
      if (this.#onReady === null) return;
      this.#hasMet ||= delayMs === longestDelayMs;
      if (this.isReady) return this.#onReady();
      if (this.#ours && !this.#client.isOpen) this.#connect();
      this.#awaitNodes(Math.min(2 * delayMs, longestDelayMs));
    }, delayMs);
    timer.unref();
  }

  send(command: string, args: readonly Word[], key?: string): Promise<unknown> {
    const words = [command, ...args];
    if (isCluster(this.#client)) {
      // These have no key of their own, but follow what was sent to its node.
      if (key !== undefined && command.startsWith("WAIT"))
        return sendToSlot(this.#client, slotOf(key), words);
      return this.#client.sendCommand(key, false, words);
    }
    return this.#client.sendCommand(words);
  }

  async sendToAll(command: string, args: readonly string[]): Promise<readonly unknown[]> {
    if (!isCluster(this.#client)) return [await this.send(command, args)];
    return Promise.all(this.#client.masters.map((_node, index) => this.sendTo(index, command, args)));
  }

  async sendTo(node: number, command: string, args: readonly string[]): Promise<unknown> {
    if (!isCluster(this.#client)) return this.send(command, args);
    return (await masterOf(this.#client, node)).sendCommand([command, ...args]);
  }

  nodeOf(slot: number): string | undefined {
    const address = property(this.#client, "slots", String(slot), "master", "address");
    return typeof address === "string" ? address : undefined;
  }

  listen(listener: Listener, slot?: number): Listening {
    const client = this.#client;
    if (!isCluster(client)) return listenWith(() => client, listener);
    const any = Math.floor(Math.random() * client.masters.length);
    return listenWith(() => masterOf(client, slot === undefined ? any : placeOf(client, slot)), listener);
  }

  reconnect(): void {
    if (!this.#ours || this.cluster) return;
    if (this.#client.isOpen) this.#client.destroy();
    this.#client.connect().catch(this.#onError);
  }

  async close(): Promise<void> {
    if (this.#onReady !== null) stopListening(this.#client, "ready", this.#onReady);
    if (this.#onDown !== null)
      for (const event of downEvents) stopListening(this.#client, event, this.#onDown);
    this.#onReady = null;
    if (this.#ours && this.#client.isOpen) await this.#client.destroy();
  }
}

async function sendToSlot(cluster: Cluster, slot: number, words: readonly Word[]): Promise<unknown> {
  return (await masterOf(cluster, placeOf(cluster, slot))).sendCommand(words);
}

function placeOf(cluster: Cluster, slot: number): number {
  const master = property(cluster, "slots", String(slot), "master");
  return cluster.masters.findIndex((node) => node === master);
}

async function masterOf(cluster: Cluster, index: number): Promise<OneServer> {
  const node = cluster.masters[index];
  const client = node === undefined ? undefined : await cluster.nodeClient(node);
  if (!isObject(client) || !isNodeRedis(client) || !isOneServer(client)) {
    throw new Error("the cluster has no such node");
  }
  return client;
}

function duplicateOf(client: unknown, overrides: object): NodeRedisClient {
  const duplicate = property(client, "duplicate");
  const made = isFunction(duplicate) ? Reflect.apply(duplicate, client, [overrides]) : undefined;
  if (!isObject(made) || !isNodeRedis(made)) throw invalid("this client cannot be duplicated");
  return made;
}

/** Listens on a copy of a client that ends for good when its connection does. */
function listenWith(original: () => unknown, { onMessage, onDown }: Listener): Listening {
  let open = true;
  const down = (cause: unknown): void => {
    if (open) onDown(cause);
    open = false;
  };
  const connected = (async () => {
    const source = await original();
    const socket = property(source, "options", "socket");
    const client = duplicateOf(source, {
      disableOfflineQueue: false,
      socket: { ...(isObject(socket) ? socket : {}), reconnectStrategy: false },
    });
    client.on("error", down);
    client.on("sharded-channel-moved", () => down(new Error("the slot of a channel has moved")));
    client.on("end", () => down(null));
    if (!isOneServer(client)) throw new Error("a copy of the client cannot subscribe");
    if (open) await client.connect();
    return client;
  })();
  connected.catch(down);
  const hearOn = (channel: string) => (message: string) => {
    if (open) onMessage(message, channel);
  };
  const withClient = async (act: (client: OneServer) => Promise<unknown>): Promise<void> => {
    await act(await connected);
  };
  return {
    subscribe: (channel) => withClient((client) => client.subscribe(channel, hearOn(channel))),
    unsubscribe: (channel) => withClient((client) => client.unsubscribe(channel)),
    subscribeSharded: (channel) => withClient((client) => client.sSubscribe(channel, hearOn(channel))),
    unsubscribeSharded: (channel) => withClient((client) => client.sUnsubscribe(channel)),
    ping: () => withClient((client) => client.ping()),
    close: () => {
      open = false;
      void connected.then((client) => client.isOpen && client.destroy()).catch(() => {});
    },
  };
}
