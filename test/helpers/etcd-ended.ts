/** Which keys of etcd have ended with their lease, and not by a delete: seen by a client of its own, so that a test excuses no more than that. */
import { setTimeout as sleep } from "node:timers/promises";
import { EtcdClient } from "../../src/backends/etcd/client/client.ts";
import type { KeyValue } from "../../src/backends/etcd/client/messages/kv.ts";
import { eventType, type WatchEvent } from "../../src/backends/etcd/client/messages/watch.ts";
import * as methods from "../../src/backends/etcd/client/methods.ts";

/** Follows all keys below a prefix. */
export class EndedWithLease {
  readonly #client: EtcdClient;
  readonly #range: { readonly key: string; readonly rangeEnd: string };
  readonly #seqs = new Set<bigint>();
  readonly #following: Promise<void>;
  #from = 1n;
  #over = false;
  #endWatch: () => void = () => {};

  constructor(endpoints: readonly string[], prefix: string) {
    this.#client = new EtcdClient({ endpoints, callMs: 1_000, pingMs: 500 });
    this.#range = { key: prefix, rangeEnd: prefix.replace(/\/$/, "0") };
    this.#following = this.#follow();
  }

  /** Whether the key that was created at this revision has gone, and its lease with it. */
  has(seq: bigint): boolean {
    return this.#seqs.has(seq);
  }

  async close(): Promise<void> {
    this.#over = true;
    this.#endWatch();
    await this.#client.close();
    await this.#following;
  }

  async #follow(): Promise<void> {
    while (!this.#over) {
      await this.#watch();
      await sleep(50);
    }
  }

  /** Until the watch ends, by a server that dies for example. */
  #watch(): Promise<void> {
    return new Promise((resolve) => {
      this.#endWatch = resolve;
      const request = { ...this.#range, prevKv: true, startRevision: this.#from };
      const events = (all: readonly WatchEvent[]): void => {
        for (const { type, kv, prevKv } of all) {
          this.#from = (kv?.modRevision ?? 0n) + 1n;
          if (type === eventType.delete && prevKv !== undefined) void this.#deleted(prevKv);
        }
      };
      this.#client
        .watch(request, { created: () => {}, events, ended: () => resolve() })
        .catch(() => resolve());
    });
  }

  /** A key that somebody has deleted leaves its lease behind. */
  async #deleted({ createRevision, lease }: KeyValue): Promise<void> {
    while (!this.#over) {
      const answer = await this.#client.call(methods.leaseTimeToLive, { id: lease }).catch(() => null);
      if (answer !== null) {
        if (answer.ttl < 0n) this.#seqs.add(createRevision);
        return;
      }
      await sleep(50);
    }
  }
}
