/** The calls of the seam on ZooKeeper: entries are ephemeral sequential nodes, and whoever waits watches the node that matters. */
import type {
  Backend,
  Browsable,
  Entry,
  Examinable,
  Finding,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { LockError } from "../../core/errors.ts";
import { type AppendContext, join, look } from "./append.ts";
import { type Acl, hasZooCode, type ZooSession } from "./client/index.ts";
import type { NodeEntry } from "./data.ts";
import { asFailure, closedError } from "./failures.ts";
import { Lanes } from "./lanes.ts";
import type { Layout } from "./nodes.ts";
import { type Own, OwnEntries } from "./own.ts";
import type { Paths } from "./paths.ts";
import { Sessions, type SessionsOptions } from "./sessions.ts";
import { Viewer } from "./view.ts";
import { Watcher } from "./watcher.ts";

/** What ZooKeeper promises. */
export const zookeeperTraits: Traits = {
  scope: "network",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "store",
  tokens: "the zxid of the transaction that made the node",
  wake: "push",
  exclusivityBrokenBy: [],
  tokensRegressAfter: [],
  callOrder: true,
};

/** What a client is made of; the factory in index.ts reads it from the options. */
export interface ZooKeeperSetup extends Omit<SessionsOptions, "onLost" | "inUse"> {
  readonly paths: Paths;
  readonly layout: Layout;
  readonly acl: readonly Acl[];
  readonly examine: (sessions: readonly ZooSession[]) => Promise<readonly Finding[]>;
}

/** How many sessions in a row may end while an entry is being made. */
const sessionTries = 3;

/** One client of an ensemble. */
export class ZooKeeperBackend implements Backend, Browsable, Examinable {
  readonly name = "zookeeper";
  readonly traits: Traits = zookeeperTraits;
  readonly #setup: ZooKeeperSetup;
  readonly #clock: Clock;
  readonly #sessions: Sessions;
  readonly #owns: OwnEntries;
  readonly #viewer: Viewer;
  readonly #lanes = new Lanes();
  readonly #context: AppendContext;
  readonly #watcher: Watcher;
  /** Appends that are under way. */
  readonly #appending = new Set<{ readonly queue: string; readonly answer: Promise<Snapshot | null> }>();
  /** Those among them that make an entry, by queue and id. */
  readonly #joining = new Map<string, Promise<Snapshot | null>>();
  #closing: Promise<void> | null = null;

  /** @internal Made by zookeeperBackend. */
  constructor(setup: ZooKeeperSetup) {
    const { clock, paths, layout, acl } = setup;
    this.#setup = setup;
    this.#clock = clock;
    this.#owns = new OwnEntries(clock);
    this.#viewer = new Viewer(clock, this.#owns);
    this.#watcher = new Watcher(clock, paths, this.#owns, this.#viewer);
    this.#sessions = new Sessions({
      ...setup,
      onLost: (session) => this.#lost(session),
      inUse: (session) => [...this.#owns.all()].some((own) => own.session === session),
    });
    const isLost = (id: bigint): boolean => this.#sessions.isLost(id);
    this.#context = { clock, paths, layout, acl, owns: this.#owns, viewer: this.#viewer, isLost };
  }

  async append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    this.#assertOpen();
    const answer = this.#told("append", () => this.#append(queue, entry));
    const appending = { queue, answer };
    this.#appending.add(appending);
    try {
      return await answer;
    } finally {
      this.#appending.delete(appending);
    }
  }

  async #append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    const key = `${queue}\n${entry.id}`;
    // An append with the same id that is under way is this one: it says which entry is meant.
    await this.#joining.get(key)?.catch(() => null);
    const own = this.#owns.find(queue, entry.id);
    if (own?.state === "live") {
      const said = await look(this.#context, own);
      if (said !== null) return said;
      await this.#owns.guard(own);
    } else {
      await own?.deletion;
    }
    const joining = this.#join(queue, entry);
    this.#joining.set(key, joining);
    try {
      return await joining;
    } finally {
      if (this.#joining.get(key) === joining) this.#joining.delete(key);
    }
  }

  async #join(queue: string, entry: NewEntry, tries = 1): Promise<Snapshot | null> {
    const session = this.#sessions.forTtl(entry.ttlMs);
    const turn = this.#lanes.enter(queue, session, !this.#owns.has(queue));
    try {
      if (turn.start !== null) await turn.start;
      return await join(this.#context, session, queue, entry, turn);
    } catch (error) {
      // A new session is a new identity: what hung on the old one is not ours any more.
      if (!hasZooCode(error, "sessionExpired") || tries >= sessionTries) throw error;
    } finally {
      turn.leave();
    }
    return this.#join(queue, entry, tries + 1);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    this.#assertOpen();
    const proofs = new Map<ZooSession, Promise<unknown>>();
    return this.#told("renew", () =>
      Promise.all(
        renewals.map(async (renewal) => {
          try {
            return await this.#renew(renewal, proofs);
          } catch (cause) {
            this.#assertOpen();
            return { outcome: "unknown", cause } as const;
          }
        }),
      ),
    );
  }

  async #renew(
    { queue, id, seq, ttlMs }: Renewal,
    proofs: Map<ZooSession, Promise<unknown>>,
  ): Promise<Renewed> {
    const own = this.#owns.find(queue, id);
    if (own === undefined || own.seq !== seq) return this.#renewUnknown(queue, id, seq);
    if (own.state === "live") {
      const { session } = own;
      // 1. From here on we hear of it if somebody takes the entry out.
      const guarded = this.#owns.guard(own);
      // 2. A write, once for all entries of the session: it needs the leader and a majority, and shows that the session
      //    lives there. What happened before it, our server has told us when it is answered.
      const proof = proofs.get(session) ?? session.multi([{ op: "check", path: own.path }]);
      proofs.set(session, proof);
      await Promise.all([guarded, proof]);
    } else await own.deletion;
    const now = this.#clock.now();
    if (own.state !== "live" || own.expiresAt <= now) {
      return { outcome: "gone", evicted: this.#owns.wasEvicted(id, seq) };
    }
    if (!own.guarded) return { outcome: "unknown" };
    own.expiresAt = Math.max(own.expiresAt, now + ttlMs);
    return { outcome: "renewed", expiresInMs: own.lifeMs(now) };
  }

  /** An entry that is not ours, or not any more. */
  async #renewUnknown(queue: string, id: string, seq: bigint): Promise<Renewed> {
    if (this.#owns.wasEvicted(id, seq)) return { outcome: "gone", evicted: true };
    const found = await this.#find(queue, id);
    if (found === null || found.seq !== seq) return { outcome: "gone" };
    return { outcome: "unknown", cause: new Error("the entry hangs on the session of another client") };
  }

  async remove(queue: string, id: string, evict = false, seq?: bigint): Promise<boolean> {
    this.#assertOpen();
    return this.#told("remove", () => this.#remove(queue, id, evict, seq));
  }

  async #remove(queue: string, id: string, evict: boolean, seq: bigint | undefined): Promise<boolean> {
    const own = this.#owns.find(queue, id);
    if (own !== undefined) return this.#removeOwn(own, evict, seq);
    const found = await this.#find(queue, id);
    if (found === null || (seq !== undefined && found.seq !== seq)) return false;
    try {
      await this.#sessions.any().delete(`${this.#setup.paths.of(queue)}/${found.node}`);
      return true;
    } catch (error) {
      if (hasZooCode(error, "noNode")) return false;
      throw error;
    }
  }

  async #removeOwn(own: Own, evict: boolean, seq: bigint | undefined): Promise<boolean> {
    if (seq !== undefined && own.seq !== seq) return false;
    const wasLive = own.state === "live";
    const expired = own.expiresAt <= this.#clock.now();
    const deleted = await this.#inTime(this.#owns.delete(own, evict));
    if (deleted && evict && wasLive) this.#owns.onEvicted?.(own.queue, own.asked.id);
    return deleted && wasLive && !expired;
  }

  /** Deleting goes on for as long as the session lives; whoever asked for it does not wait for that. */
  #inTime(deletion: Promise<boolean>): Promise<boolean> {
    const { reachMs } = this.#setup;
    return new Promise((resolve, reject) => {
      const late = this.#clock.after(reachMs, () => {
        const text = "the store has not answered yet whether the entry is out: it is being tried on";
        reject(new LockError("LOCK_OUTCOME_UNKNOWN", text, { backend: this.name }));
      });
      void deletion.then(resolve, reject).finally(() => late.cancel());
    });
  }

  #find(queue: string, id: string): Promise<NodeEntry | null> {
    return this.#viewer.find(this.#sessions.any(), this.#setup.paths.of(queue), id);
  }

  async list(queue: string): Promise<readonly Entry[]> {
    this.#assertOpen();
    await this.#answered(queue);
    return this.#told("list", () => this.#viewer.entries(this.#sessions.any(), this.#setup.paths.of(queue)));
  }

  /** Resolves when the appends that were asked before, to one queue or to all, are answered: one may be sent twice. */
  async #answered(queue?: string): Promise<void> {
    const before = [...this.#appending].filter((one) => queue === undefined || one.queue === queue);
    await Promise.allSettled(before.map(({ answer }) => answer));
  }

  async watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    this.#assertOpen();
    const tell = (fresh?: Snapshot): void => {
      if (this.#closing === null) onChange(fresh);
    };
    return this.#told("watch", () => this.#watcher.watch(queue, self, target, tell));
  }

  async queues(prefix: string): Promise<readonly string[]> {
    this.#assertOpen();
    await this.#answered();
    return this.#told("queues", () => this.#viewer.queues(this.#sessions.any(), this.#setup.paths, prefix));
  }

  async examine(): Promise<readonly Finding[]> {
    this.#assertOpen();
    const session = this.#sessions.any();
    return this.#told("examine", async () => {
      await session.sync("/");
      return this.#setup.examine(this.#sessions.all());
    });
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#owns.onEvicted = listener;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Entries that are left keep their session, for as long as the last of them would live. */
  async #close(): Promise<void> {
    const now = this.#clock.now();
    const lives = new Map<ZooSession, number>();
    for (const { session, expiresAt } of this.#owns.all()) {
      lives.set(session, Math.max(lives.get(session) ?? 0, expiresAt - now));
    }
    this.#owns.rest();
    await Promise.all(
      this.#sessions.all().map((session) => {
        const lifeMs = lives.get(session);
        return lifeMs === undefined ? session.close() : session.leave(lifeMs);
      }),
    );
  }

  #lost(session: ZooSession): void {
    if (this.#closing !== null) return;
    this.#owns.sessionLost(session);
    this.#viewer.neighbours(session).forget();
  }

  async #told<T>(what: string, work: () => Promise<T> | T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (this.#closing !== null) throw closedError();
      throw asFailure(error, what);
    }
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw closedError();
  }
}
