/** One client in a process of its own: a LockManager over the store, its users, and their record; told what to do by its parent. */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openBackend } from "../../connect.ts";
import type { Backend } from "../../core/backend.ts";
import { LockManager } from "../../core/manager.ts";
import type { Violation } from "../checks/check.ts";
import { Dice } from "../simulate/dice.ts";
import { recordTo } from "./history-file.ts";
import { Observer } from "./observer.ts";
import { RemoteResource } from "./resource-client.ts";
import { Users } from "./workload.ts";

/** What a client is told. */
export type Order =
  | { readonly order: "start"; readonly task: ClientTask }
  /** Its event loop does nothing else for so long. */
  | { readonly order: "hang"; readonly ms: number }
  | { readonly order: "measure" }
  | { readonly order: "finish" };

/** What a client is to do. */
export interface ClientTask {
  readonly proc: string;
  readonly url: string;
  readonly file: string;
  readonly fencedPort: number;
  readonly unfencedPort: number;
  readonly prefix: string;
  readonly ttlMs: number;
  /** How long its calm opening is, from when it has connected. */
  readonly calmMs: number;
  readonly lanes: number;
  readonly seed: number;
  readonly ownStore: boolean;
  readonly place: number;
  /** A stream of chance that no other client has. */
  readonly stream: number;
}

/** What a client says. */
export type News =
  | { readonly news: "started" }
  /** The stories of the calm opening have been told. */
  | { readonly news: "settled" }
  | { readonly news: "woke" }
  | { readonly news: "measured"; readonly rss: number; readonly heap: number; readonly grants: number }
  | {
      readonly news: "ended";
      readonly pending: number;
      readonly grants: number;
      readonly losses: number;
      readonly leaks: Readonly<Record<string, number>>;
      readonly violations: readonly Violation[];
    };

/** How long what is closed may take to be gone: drivers give a connection that does not answer a few seconds. */
const settleMs = 8_000;
/** How often it is looked for at least: whoever stood still for so long has not had its time. */
const settleLooks = 40;
/** How many stories for two are told at the same time: a store on a small machine has to keep up with all clients. */
const duetLanes = 3;
let finish: () => void = () => {};
const toFinish = new Promise<void>((resolve) => {
  finish = resolve;
});
let observer: Observer | null = null;

process.on("message", (order: Order) => {
  switch (order.order) {
    case "start":
      work(order.task).catch((error: unknown) => {
        writeSync(2, `${order.task.proc}: ${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      });
      return;
    case "hang": {
      const until = performance.now() + order.ms;
      while (performance.now() < until);
      return say({ news: "woke" });
    }
    case "measure": {
      const { rss, heapUsed } = process.memoryUsage();
      return say({ news: "measured", rss, heap: heapUsed, grants: observer?.grants ?? 0 });
    }
    case "finish":
      return finish();
  }
});
process.on("disconnect", () => process.exit());
// Ctrl-C on the terminal reaches the whole group: when this ends is for the parent to say.
process.on("SIGINT", () => {});

function say(news: News): void {
  if (process.connected) process.send?.(news);
}

async function work(task: ClientTask): Promise<void> {
  const before = openThings();
  const open = (): Promise<Backend> => opened(task.url);
  const [fenced, unfenced] = [new RemoteResource(task.fencedPort), new RemoteResource(task.unfencedPort)];
  observer = new Observer(recordTo(task.file), task.proc);
  const { proc, prefix, ttlMs, calmMs, lanes, ownStore, place } = task;
  const locks = new LockManager(await open(), { ttl: ttlMs, label: proc });
  const dice = new Dice(task.seed, task.stream);
  const users = new Users({
    locks,
    observer,
    dice,
    fenced,
    unfenced,
    prefix,
    ttlMs,
    calmUntil: process.hrtime.bigint() + BigInt(Math.round(calmMs * 1e6)),
    lanes,
    ownStore,
    place,
    duetLanes,
    open,
  });
  const done = users.run();
  say({ news: "started" });
  void users.settled.then(() => say({ news: "settled" }));
  await toFinish;
  users.stop();
  await done;
  fenced.close();
  unfenced.close();
  await locks.close();
  const { pending, grants, losses, violations } = observer;
  say({ news: "ended", pending, grants, losses, violations, leaks: await leaksAfter(before) });
}

/** A store that is broken at the moment is tried again: nobody has asked for a lock yet. */
async function opened(url: string): Promise<Backend> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openBackend(url);
    } catch (error) {
      if (tries === 100) throw error;
      await sleep(200);
    }
  }
}

/** What is left open in the end. */
async function leaksAfter(before: ReadonlyMap<string, number>): Promise<Record<string, number>> {
  const until = performance.now() + settleMs;
  for (let looks = 1; ; looks++) {
    await sleep(50);
    const leaks = grown(before, openThings());
    if (Object.keys(leaks).length === 0) return leaks;
    if (looks >= settleLooks && performance.now() > until) return leaks;
  }
}

/** What keeps this process alive, by kind. */
function openThings(): Map<string, number> {
  // Where it is a pipe, it opens when it is first used.
  process.stderr.write("");
  const found = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) found.set(kind, (found.get(kind) ?? 0) + 1);
  return found;
}

/** What there is more of; an immediate is over with this turn. */
function grown(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Record<string, number> {
  const more: Record<string, number> = {};
  for (const [kind, count] of after) {
    const extra = count - (before.get(kind) ?? 0);
    if (extra > 0 && kind !== "Immediate") more[kind] = extra;
  }
  return more;
}
