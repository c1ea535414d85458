/** What the queues look like now, for people and machines: read from the store, decided by the rules of the core. */
import type { Backend, Browsable, Entry } from "../core/backend.ts";
import { split } from "../core/grant.ts";
import { nameOfQueue, semaphoreQueue } from "../core/names.ts";
import { human, printable } from "./human.ts";
import type { Column } from "./table.ts";

/** One queue at one moment. */
export interface QueueView {
  readonly queue: string;
  readonly name: string;
  readonly kind: "lock" | "semaphore";
  readonly held: readonly Entry[];
  readonly waiting: readonly Entry[];
}

/** How many queues are asked for at once. */
const batchSize = 32;

/** One queue. */
export async function viewQueue(backend: Backend, queue: string): Promise<QueueView> {
  const { held, pending } = split(await backend.list(queue));
  const name = nameOfQueue(queue);
  return { queue, name, kind: queue === name ? "lock" : "semaphore", held, waiting: pending };
}

/** The lock and the semaphore of a name, those of them that have entries. */
export async function viewName(backend: Backend, name: string): Promise<readonly QueueView[]> {
  const views = await Promise.all([viewQueue(backend, name), viewQueue(backend, semaphoreQueue(name))]);
  return views.filter(({ held, waiting }) => held.length + waiting.length > 0);
}

/** All queues whose names start with the prefix, sorted by name. */
export async function viewAll(backend: Backend & Browsable, prefix: string): Promise<readonly QueueView[]> {
  const found = await Promise.all([backend.queues(prefix), backend.queues(semaphoreQueue(prefix))]);
  // Queues of semaphores start with "-", so an empty prefix finds them twice.
  const queues = [...new Set(found.flat())];
  const views: QueueView[] = [];
  for (let from = 0; from < queues.length; from += batchSize) {
    views.push(
      ...(await Promise.all(queues.slice(from, from + batchSize).map((queue) => viewQueue(backend, queue)))),
    );
  }
  return views
    .filter(({ held, waiting }) => held.length + waiting.length > 0)
    .toSorted((one, other) => compare(one.name, other.name) || compare(one.kind, other.kind));
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Who made an entry, in one word or two: host:pid and the label. */
export function holderOf({ owner }: Entry): string {
  const place = `${owner.host}:${owner.pid}`;
  return printable(owner.label === undefined ? place : `${place} ${owner.label}`);
}

/** How an entry holds or wants to hold. */
export function modeOf(entry: Entry): string {
  if (entry.permits !== undefined) return `${entry.weight} of ${entry.permits}`;
  return entry.mode === "read" ? "shared" : "exclusive";
}

/** The columns of a listing. */
export const listColumns: readonly Column[] = [
  { title: "NAME", least: 8 },
  { title: "MODE", drop: 4 },
  { title: "HOLDER", least: 8 },
  { title: "TOKEN", align: "right", drop: 2 },
  { title: "SINCE", align: "right" },
  { title: "EXPIRES", align: "right", drop: 3 },
  { title: "WAITING", align: "right", drop: 5 },
  { title: "METADATA", least: 8, drop: 1 },
];

/** A row for each holder of a queue; how many wait stands on the first. */
export function listRows(view: QueueView): readonly (readonly string[])[] {
  const name = printable(view.name);
  const waiting = String(view.waiting.length);
  if (view.held.length === 0) return [[name, "", "nobody", "", "", "", waiting, ""]];
  return view.held.map((entry, index) => [
    name,
    modeOf(entry),
    holderOf(entry),
    String(entry.seq),
    human(entry.ageMs),
    human(entry.expiresInMs),
    index === 0 ? waiting : "",
    printable(entry.metadata ?? ""),
  ]);
}

/** One entry for machines. */
export function entryRecord(view: QueueView, entry: Entry): object {
  const { client, host, pid, label } = entry.owner;
  return {
    name: view.name,
    kind: view.kind,
    state: view.held.includes(entry) ? "held" : "waiting",
    mode: entry.mode === "read" ? "shared" : "exclusive",
    token: entry.seq,
    owner: { host, pid, label },
    clientId: client,
    since: new Date(Date.now() - entry.ageMs).toISOString(),
    ageMs: Math.round(entry.ageMs),
    expiresInMs: Math.round(entry.expiresInMs),
    metadata: entry.metadata,
    ...(entry.permits === undefined ? {} : { weight: entry.weight, permits: entry.permits }),
  };
}
