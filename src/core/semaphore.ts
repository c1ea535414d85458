/** A lock that several may hold at once: up to so many permits, granted in order. */
import { attempt, type LockClient } from "./client.ts";
import { invalid } from "./errors.ts";
import type { Lock } from "./lock.ts";
import { checkName, semaphoreQueue } from "./names.ts";
import {
  type Asked,
  callbackOf,
  checkOptions,
  checkWeight,
  optionNames,
  type PermitOptions,
  wishFor,
} from "./options.ts";
import type { Wish } from "./wish.ts";

/** Permits of one name. All who use it should give the same number; each request is judged by its own. */
export class Semaphore {
  readonly name: string;
  readonly permits: number;
  readonly #client: LockClient;
  readonly #defaults: Asked;

  /** @internal Made by LockManager.semaphore. */
  constructor(client: LockClient, name: string, permits: number, defaults: Asked) {
    this.name = checkName(name);
    this.permits = checkWeight(permits, "permits");
    this.#client = client;
    this.#defaults = { ...defaults, mode: "shared", reentrant: false };
  }

  /** Runs the callback while holding permits; with `ifAvailable` it may get null. */
  request<T>(callback: (permit: Lock) => T): Promise<Awaited<T>>;
  request<T>(
    options: PermitOptions & { ifAvailable?: false },
    callback: (permit: Lock) => T,
  ): Promise<Awaited<T>>;
  request<T>(options: PermitOptions, callback: (permit: Lock | null) => T): Promise<Awaited<T>>;
  request(first?: unknown, second?: unknown): Promise<unknown> {
    return attempt(() => {
      const callback = callbackOf(first, second);
      const options = second === undefined ? undefined : first;
      return this.#client.section(this.#wish(options, optionNames.permitRequest), callback);
    });
  }

  /** Waits for permits. */
  acquire(options?: Omit<PermitOptions, "ifAvailable">): Promise<Lock> {
    return attempt(() => this.#client.acquire(this.#wish(options, optionNames.permitAcquire)));
  }

  /** Permits, or null if they are not to be had now. */
  tryAcquire(options?: Omit<PermitOptions, "ifAvailable" | "signal" | "wait">): Promise<Lock | null> {
    return attempt(() =>
      this.#client.take({ ...this.#wish(options, optionNames.permitTry), ifAvailable: true }),
    );
  }

  #wish(options: unknown, allowed: (typeof optionNames)["permitTry"]): Wish {
    const asked = checkOptions(options, allowed, this.#defaults);
    if (asked.weight > this.permits) {
      const shown = JSON.stringify(this.name);
      throw invalid(
        `weight is ${asked.weight}, but the semaphore ${shown} has ${this.permits} permits: it would wait for ever`,
      );
    }
    return wishFor(asked, this.name, semaphoreQueue(this.name), this.permits);
  }
}
