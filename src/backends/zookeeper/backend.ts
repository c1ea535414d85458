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

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    const answer = this.#append(queue, entry);
    const appending = { queue, answer };
    const end = (): void => void this.#appending.delete(appending);
    this.#appending.add(appending);
    answer.then(end, end);
    return answer;
  }

  async #append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    this.#assertOpen();
    const key = `${queue}\n${entry.id}`;
    try {
      // An append with the same id that is under way is this one: it says which entry is meant.
      for (let same = this.#joining.get(key); same !== undefined; same = this.#joining.get(key)) {
        await same.catch(() => null);
      }
      const own = this.#owns.find(queue, entry.id);
      const found = own === undefined ? null : await this.#found(own);
      if (found !== null) return found;
      const joining = this.#join(queue, entry).finally(() => this.#joining.delete(key));
      this.#joining.set(key, joining);
      return await joining;
    } catch (error) {
      throw this.#closing === null ? asFailure(error, "append") : closedError();
    }
  }

  /** Where an entry of ours stands; null if it has left, or its session is over and it with it. */
  async #found(own: Own): Promise<Snapshot | null> {
    if (own.state !== "live") {
      await own.deletion;
      return null;
    }
    try {
      const said = await look(this.#context, own);
      if (said === null) await this.#owns.guard(own);
      return said;
    } catch (error) {
      if (hasZooCode(error, "sessionExpired")) return null;
      throw error;
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
    const own = this.#owns.find(queue, id);
    if (own === undefined) return this.#told("remove", () => this.#removeOther(queue, id, seq));
    if (seq !== undefined && own.seq !== seq) return false;
    const wasLive = own.state === "live" && own.expiresAt > this.#clock.recent();
    // This goes on until the node is gone or its session is, and so does not take longer than a session.
    const deleted = await this.#owns.delete(own, evict);
    if (deleted && evict && wasLive) this.#owns.onEvicted?.(queue, id);
    return deleted && wasLive;
  }

  async #removeOther(queue: string, id: string, seq: bigint | undefined): Promise<boolean> {
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
