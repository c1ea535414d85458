/** A layer whose calls a test counts, holds back, fails or answers late; what it does not touch goes through. */
import {
  type Answer,
  type Backend,
  type Browsable,
  type Entry,
  isBrowsable,
  type NewEntry,
  type Renewal,
  type Renewed,
  type Snapshot,
  type Traits,
} from "../../src/core/backend.ts";

/** What a test does instead of a call; `send` makes the real call. */
export interface Hooks {
  append?: (send: () => Answer<Snapshot | null>, queue: string, entry: NewEntry) => Answer<Snapshot | null>;
  renew?: (
    send: () => Promise<readonly Renewed[]>,
    renewals: readonly Renewal[],
  ) => Promise<readonly Renewed[]>;
  remove?: (send: () => Answer<boolean>, queue: string, id: string, evict: boolean) => Answer<boolean>;
  list?: (send: () => Promise<readonly Entry[]>, queue: string) => Promise<readonly Entry[]>;
  watch?: (
    send: () => Answer<() => void>,
    onChange: (fresh?: Snapshot) => void,
    self: Entry,
  ) => Answer<() => void>;
}

/** One call that was made, with what it was about. */
export interface Call {
  readonly method: "append" | "renew" | "remove" | "list" | "watch" | "close";
  readonly queue: string;
  readonly id: string;
  readonly size: number;
}

/** A backend around a backend. */
export class Controlled implements Backend, Browsable {
  readonly traits: Traits;
  readonly calls: Call[] = [];
  hooks: Hooks = {};
  /** Made by handsOver. */
  handOver?: NonNullable<Backend["handOver"]>;
  /** How often the name was asked for. */
  nameReads = 0;
  readonly #inner: Backend;

  constructor(inner: Backend, traits: Partial<Traits> = {}) {
    this.#inner = inner;
    this.traits = { ...inner.traits, ...traits };
  }

  get name(): string {
    this.nameReads += 1;
    return this.#inner.name;
  }

  /** How many calls of a method were made. */
  count(method: Call["method"]): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  /** From now on, a client hands its locks to its own entries: what becomes of the entry that leaves is told by the hook of remove. */
  handsOver(): void {
    this.handOver = (queue, id) => this.remove(queue, id);
  }

  append(queue: string, entry: NewEntry, signal?: AbortSignal): Answer<Snapshot | null> {
    this.calls.push({ method: "append", queue, id: entry.id, size: 1 });
    const send = (): Answer<Snapshot | null> => this.#inner.append(queue, entry, signal);
    return this.hooks.append === undefined ? send() : this.hooks.append(send, queue, entry);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    const [first] = renewals;
    this.calls.push({
      method: "renew",
      queue: first?.queue ?? "",
      id: first?.id ?? "",
      size: renewals.length,
    });
    const send = (): Promise<readonly Renewed[]> => this.#inner.renew(renewals);
    return this.hooks.renew === undefined ? send() : this.hooks.renew(send, renewals);
  }

  remove(queue: string, id: string, evict = false): Answer<boolean> {
    this.calls.push({ method: "remove", queue, id, size: 1 });
    const send = (): Answer<boolean> => this.#inner.remove(queue, id, evict);
    return this.hooks.remove === undefined ? send() : this.hooks.remove(send, queue, id, evict);
  }

  list(queue: string): Promise<readonly Entry[]> {
    this.calls.push({ method: "list", queue, id: "", size: 1 });
    const send = (): Promise<readonly Entry[]> => this.#inner.list(queue);
    return this.hooks.list === undefined ? send() : this.hooks.list(send, queue);
  }

  watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Answer<() => void> {
    this.calls.push({ method: "watch", queue, id: self.id, size: 1 });
    const send = (): Answer<() => void> => this.#inner.watch(queue, self, target, onChange);
    return this.hooks.watch === undefined ? send() : this.hooks.watch(send, onChange, self);
  }

  async queues(prefix: string): Promise<readonly string[]> {
    return isBrowsable(this.#inner) ? this.#inner.queues(prefix) : [];
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#inner.onEvicted?.(listener);
  }

  close(): Promise<void> {
    this.calls.push({ method: "close", queue: "", id: "", size: 0 });
    return this.#inner.close();
  }
}
