/**
 * The queues in one file, as one thread of one process uses them: each call is one short transaction, taken in turn, and
 * whom it concerns is told after its commit. What happens inside a transaction is written in ledger.ts.
 */
import type { Answer, Entry, Finding, NewEntry, Renewal, Renewed, Snapshot } from "../../core/backend.ts";
import { tooBusy } from "./busy.ts";
import type { Database } from "./driver.ts";
import { examineFile } from "./examine.ts";
import { failureOf, isBusy, refusal } from "./failure.ts";
import { identityOf } from "./identity.ts";
import { Hub } from "./hub.ts";
import { Ledger } from "./ledger.ts";
import { isGone, type Machine } from "./machine.ts";
import { lineOf, type Message, messageOf } from "./messages.ts";
import { entryOf, prepare, type Standing, standingOf, type Statements } from "./statements.ts";
import { snapshotOf } from "./succession.ts";
import { Transactions } from "./transactions.ts";
import { Turns } from "./turns.ts";
import { type StoreClient, type Watch, Watches } from "./watches.ts";

/** How often entries are looked for that nobody renewed and nobody asked about. */
const sweepMs = 60_000;

/** How old what is known about the path may be when a lock is asked for, in milliseconds. */
const pathMs = 50;

/** How often an append takes out what is dead ahead of it, and looks again, before it says what it sees. */
const cleaningTries = 3;

/** The queues of one file. */
export class SqliteStore {
  readonly #path: string;
  readonly #file: string | null;
  readonly #db: Database;
  readonly #machine: Machine;
  readonly #driver: string;
  readonly #statements: Statements;
  readonly #ledger: Ledger;
  readonly #transactions: Transactions;
  readonly #turns: Turns;
  readonly #hub: Hub;
  readonly #watches = new Watches();
  readonly #clients = new Map<number, StoreClient>();
  readonly #sweeper: NodeJS.Timeout;
  #lastSlot = 0;
  #pathSeenAt = 0;
  /** What was last seen of the path. */
  #replaced = false;

  /** @param file what tells the file from others, at the time when it was opened */
  constructor(
    path: string,
    file: string | null,
    driver: string,
    db: Database,
    machine: Machine,
    patienceMs: number,
  ) {
    this.#path = path;
    this.#file = file;
    this.#driver = driver;
    this.#db = db;
    this.#machine = machine;
    this.#statements = prepare(db);
    this.#transactions = new Transactions(path, db, this.#statements, {
      committed: () => this.#send(),
      undone: () => void this.#ledger.takeLetters(),
    });
    this.#turns = new Turns(patienceMs, isBusy, (cause) => tooBusy(path, patienceMs, cause));
    this.#hub = new Hub(path, {
      onMessage: (line) => this.#deliver(messageOf(line)),
      onLost: (process) => this.#background(() => this.#lost(process)),
    });
    // The end of a process that we are in touch with would have been heard.
    this.#ledger = new Ledger(
      this.#statements,
      machine,
      (process) => this.#isGone(process),
      (process) => this.#forget(process),
    );
    this.#sweeper = setInterval(() => this.#background(() => this.#sweep()), sweepMs);
    this.#sweeper.unref();
    this.#background(() => this.#sweep());
  }

  /** Lets a client in; gives the number by which it is found when an entry of its own is evicted. */
  join(client: StoreClient): number {
    this.#clients.set(++this.#lastSlot, client);
    return this.#lastSlot;
  }

  leave(slot: number): void {
    const client = this.#clients.get(slot);
    if (client !== undefined) this.#watches.endAll(client);
    this.#clients.delete(slot);
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await this.#turns.idle();
    await this.#hub.close();
    this.#db.rest();
  }

  append(queue: string, asked: NewEntry, slot: number): Answer<Snapshot | null> {
    if (performance.now() - this.#pathSeenAt > pathMs) this.#assertThere();
    this.#hub.start();
    const owner = { process: this.#hub.name, slot };
    return this.#turns.take(() => {
      const alone = (): Snapshot | null => this.#ledger.appendAlone(queue, asked, owner);
      const found = this.#transactions.alone(alone, () => this.#ledger.append(queue, asked, owner));
      return found === null || "ahead" in found ? found : this.#stand(queue, found);
    });
  }

  /** Where an entry stands that has been appended: a busy file does not undo that any more. */
  #stand(queue: string, self: Standing): Snapshot {
    const { begin, beginRead } = this.#statements;
    try {
      for (let tries = 1; ; tries++) {
        const { snapshot, isClean } = this.#transactions.run(() => this.#ledger.look(queue, self), beginRead);
        if (isClean || tries === cleaningTries) return snapshot;
        this.#transactions.run(() => this.#ledger.clean(queue, self), begin);
      }
    } catch (error) {
      throw failureOf(error, this.#path);
    }
  }

  renew(renewals: readonly Renewal[]): Answer<readonly Renewed[]> {
    // Whoever comes now uses another file, and is not kept out by these any more.
    if (!this.#isThere()) return renewals.map(() => ({ outcome: "gone" }));
    return this.#turns.take(() =>
      this.#transactions.run(() => renewals.map((renewal) => this.#ledger.renew(renewal))),
    );
  }

  remove(queue: string, id: string, evict: boolean, seq?: bigint): Answer<boolean> {
    return this.#turns.take(() => {
      if (!evict && seq !== undefined && this.#removeAlone(queue, seq)) return !this.#replaced;
      // Out of a file that is not used any more it is taken, too, so that nobody waits for it there.
      return this.#transactions.run(() => this.#ledger.remove(queue, id, evict, seq)) && !this.#replaced;
    });
  }

  #removeAlone(queue: string, seq: bigint): boolean {
    const done = this.#transactions.direct(() => this.#ledger.removeAlone(queue, seq));
    if (done === null) return false;
    if (done === "removed") this.#send();
    // The entry is out: a busy file does not undo that any more.
    else this.#background(() => this.#transactions.run(() => this.#ledger.tellBehind(queue, seq)));
    return true;
  }

  /** The live entries of a queue, after taking out those that have expired or whose process has ended. */
  list(queue: string): Answer<readonly Entry[]> {
    this.#assertThere();
    return this.#turns.take(() => {
      const read = (): readonly ReturnType<typeof standingOf>[] =>
        this.#transactions.direct(() => this.#statements.all.all(queue)).map(standingOf);
      let standings = read();
      const nowUs = this.#machine.nowUs();
      const gone = new Set(
        standings.map(({ process }) => process).filter((process) => this.#isGone(process)),
      );
      if (gone.size > 0 || standings.some(({ untilUs }) => untilUs <= nowUs)) {
        this.#transactions.run(() => {
          this.#ledger.expire(queue, nowUs);
          this.#ledger.clear(gone, nowUs);
        });
        standings = read();
      }
      return standings.map((standing) => entryOf(standing, nowUs));
    });
  }

  queues(prefix: string): Answer<readonly string[]> {
    this.#assertThere();
    return this.#turns.take(() => {
      this.#sweep();
      const rows = this.#transactions.direct(() => this.#statements.queues.all());
      return rows.map(({ queue }) => queue).filter((queue) => queue.startsWith(prefix));
    });
  }

  examine(): Answer<readonly Finding[]> {
    return this.#turns.take(() =>
      this.#transactions.direct(() => examineFile(this.#path, this.#driver, this.#db, this.#machine)),
    );
  }

  /** Calls back when the target leaves, or when room was made; at once if that has happened already. */
  watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    client: StoreClient,
    onChange: (fresh?: Snapshot) => void,
  ): Answer<() => void> {
    const waiter = String(self.seq);
    const watch: Watch = { queue, self, waiter, target, client, onChange, kept: new Map() };
    return this.#turns.take(() => {
      // Whoever takes the target out after the look finds the watch standing.
      this.#watches.add(watch);
      this.#look(watch);
      return () => this.#watches.end(watch);
    });
  }

  /** Looks whether a watch has anything left to wait for, and stays in touch with the processes that it waits for. */
  #look(watch: Watch): void {
    const blockers = this.#transactions.direct(() => this.#blockers(watch));
    if (blockers === null) return this.#watches.call(watch);
    for (const process of blockers) {
      if (process === this.#hub.name || watch.kept.has(process)) continue;
      watch.kept.set(process, this.#hub.keep(process));
    }
  }

  /** The processes whose entries a watch waits for; null if it need not wait any more. */
  #blockers({ queue, self, target }: Watch): readonly string[] | null {
    const { bySeq, ahead, processesAhead } = this.#statements;
    const row = bySeq.get(queue, (target ?? self).seq);
    if (row === undefined || row.until <= this.#machine.nowUs()) return null;
    if (target !== null) return [row.process];
    const weight = Number(ahead.get(queue, self.seq)?.weight ?? 0);
    if (weight + self.weight <= (self.permits ?? 0)) return null;
    return processesAhead.all(queue, self.seq).map(({ process }) => process);
  }

  /** Whether the path still leads to the file that is open here. */
  #isThere(): boolean {
    this.#replaced = identityOf(this.#path) !== this.#file;
    if (!this.#replaced) this.#pathSeenAt = performance.now();
    return !this.#replaced;
  }

  #assertThere(): void {
    if (this.#isThere()) return;
    const text = `the file ${this.#path} was deleted or replaced while it was in use: connect again, to the new one`;
    throw refusal("LOCK_UNAVAILABLE", text);
  }

  // Other processes.

  #isNear(process: string): boolean {
    return process === this.#hub.name || this.#hub.isInTouch(process);
  }

  #isGone(process: string): boolean {
    return !this.#isNear(process) && isGone(process);
  }

  /** A process has ended, or cannot be reached. If it has ended, its entries go; and whoever waits for it looks again. */
  #lost(process: string): void {
    const gone = this.#isGone(process);
    if (gone) this.#transactions.run(() => this.#ledger.clear([process], this.#machine.nowUs()));
    this.#lookAgain(process);
  }

  /** Somebody found that a process has ended, and takes its entries out: its end will not be heard any more. */
  #forget(process: string): void {
    this.#hub.forget(process);
    this.#background(() => this.#lookAgain(process));
  }

  /** Whoever waits for a process looks. */
  #lookAgain(process: string): void {
    for (const watch of this.#watches.on(process)) this.#look(watch);
  }

  #deliver(message: Message | null): void {
    if (message === null) return;
    const { kind } = message;
    if (kind === "evicted") return this.#clients.get(message.slot)?.evicted(message.queue, message.id);
    const nowUs = this.#machine.nowUs();
    if (kind === "first") return this.#watches.tellFirst(message, nowUs);
    const { seq, fresh } = message;
    this.#watches.tell(seq, fresh === null ? undefined : snapshotOf(fresh, nowUs));
  }

  #sweep(): void {
    this.#transactions.run(() => this.#ledger.sweep());
  }

  /** Work that nobody waits for; where it fails, the ttl frees what it would have freed. */
  #background(work: () => void): void {
    void (async () => this.#turns.take(work))().catch(() => {});
  }

  /** Tells whom the transaction concerned. Those of this process may call the store again at once. */
  #send(): void {
    for (const { process, message } of this.#ledger.takeLetters()) {
      if (process === this.#hub.name) this.#deliver(message);
      else this.#hub.send(process, lineOf(message));
    }
  }
}
