/**
 * A backend that lives in a child process, behind the seam: every call travels there and back. With it the contract runs
 * from several processes at once, for any backend whose module can be imported by its address.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type {
  Backend,
  Browsable,
  Entry,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../src/core/backend.ts";
import { LockError, type LockErrorCode } from "../../src/core/errors.ts";

/** What a child answers: to a call, or by itself when a watch or a listener was called. */
type Reply =
  | { readonly call: number; readonly value: unknown }
  | {
      readonly call: number;
      readonly error: { readonly code: LockErrorCode | null; readonly message: string };
    }
  | { readonly watch: number; readonly fresh?: Snapshot }
  | { readonly evicted: number; readonly queue: string; readonly id: string };

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A process that opens backends of one kind. */
export class RemoteHost {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #watches = new Map<number, (fresh?: Snapshot) => void>();
  readonly #listeners = new Map<number, (queue: string, id: string) => void>();
  #calls = 0;

  /** `module` is the address of a compiled module, `factory` what it exports to open a backend. */
  constructor(module: string, factory: string) {
    const script = fileURLToPath(new URL("remote-host.mjs", import.meta.url));
    this.#child = fork(script, [module, factory], { serialization: "advanced", execArgv: [] });
    this.#child.on("message", (reply: Reply) => this.#receive(reply));
    this.#child.on("exit", () => {
      for (const { reject } of this.#pending.values()) reject(new Error("the host has ended"));
      this.#pending.clear();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Opens a backend over there. */
  async open(options: unknown): Promise<Backend & Browsable> {
    const client = await this.call<number>(null, "open", [options]);
    const { name, traits } = await this.call<{ name: string; traits: Traits }>(client, "describe", []);
    return new RemoteBackend(this, client, name, traits);
  }

  async call<T>(client: number | null, method: string, args: readonly unknown[], watch = 0): Promise<T> {
    const call = ++this.#calls;
    // The answer's type is what the seam says of the method.
    return new Promise<T>((resolve, reject) => {
      const settle = (value: unknown): void => Reflect.apply(resolve, undefined, [value]);
      this.#pending.set(call, { resolve: settle, reject });
      // Given a callback, it does not emit what went wrong.
      this.#child.send({ call, client, method, args, watch }, (error) => {
        if (error === null) return;
        this.#pending.delete(call);
        reject(error);
      });
    });
  }

  /** Remembers whom to call when a watch over there is called; gives its number. */
  onWatch(listener: (fresh?: Snapshot) => void): number {
    this.#watches.set(++this.#calls, listener);
    return this.#calls;
  }

  endWatch(watch: number): void {
    this.#watches.delete(watch);
  }

  onEvicted(client: number, listener: (queue: string, id: string) => void): void {
    this.#listeners.set(client, listener);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }

  #receive(reply: Reply): void {
    if ("watch" in reply) return this.#watches.get(reply.watch)?.(reply.fresh);
    if ("evicted" in reply) return this.#listeners.get(reply.evicted)?.(reply.queue, reply.id);
    const pending = this.#pending.get(reply.call);
    this.#pending.delete(reply.call);
    if (!("error" in reply)) return pending?.resolve(reply.value);
    const { code, message } = reply.error;
    pending?.reject(code === null ? new Error(message) : new LockError(code, message));
  }
}

class RemoteBackend implements Backend, Browsable {
  readonly name: string;
  readonly traits: Traits;
  readonly #host: RemoteHost;
  readonly #client: number;

  constructor(host: RemoteHost, client: number, name: string, traits: Traits) {
    this.#host = host;
    this.#client = client;
    this.name = name;
    this.traits = traits;
  }

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    return this.#host.call(this.#client, "append", [queue, entry]);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    return this.#host.call(this.#client, "renew", [renewals]);
  }

  remove(queue: string, id: string, evict?: boolean, seq?: bigint): Promise<boolean> {
    return this.#host.call(this.#client, "remove", [queue, id, evict, seq]);
  }

  list(queue: string): Promise<readonly Entry[]> {
    return this.#host.call(this.#client, "list", [queue]);
  }

  async watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    const watch = this.#host.onWatch(onChange);
    await this.#host.call(this.#client, "watch", [queue, self, target], watch);
    return () => {
      this.#host.endWatch(watch);
      void this.#host.call(this.#client, "unwatch", [watch]).catch(() => {});
    };
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#host.onEvicted(this.#client, listener);
    this.#host.call(this.#client, "onEvicted", []).catch(() => {});
  }

  queues(prefix: string): Promise<readonly string[]> {
    return this.#host.call(this.#client, "queues", [prefix]);
  }

  close(): Promise<void> {
    return this.#host.call(this.#client, "close", []);
  }
}
