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
import { nothingAhead } from "../../core/grant.ts";
import { type AppendContext, join, look } from "./append.ts";
import { type Acl, hasZooCode, type ZooSession } from "./client/index.ts";
import { asFailure, closedError } from "./failures.ts";
import { Lanes } from "./lanes.ts";
import { guidOf, type Layout, type Node, parseNode } from "./nodes.ts";
import { type Own, OwnEntries } from "./own.ts";
import type { Paths } from "./paths.ts";
import { Rooms } from "./rooms.ts";
import { Sessions, type SessionsOptions } from "./sessions.ts";
import { Viewer } from "./view.ts";

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
  readonly #rooms: Rooms;
  readonly #lanes = new Lanes();
  readonly #context: AppendContext;
  /** First appends that are under way, by queue and id. */
  readonly #joining = new Map<string, Promise<Snapshot | null>>();
  #closing: Promise<void> | null = null;

  /** @internal Made by zookeeperBackend. */
  constructor(setup: ZooKeeperSetup) {
    const { clock, paths, layout, acl } = setup;
    this.#setup = setup;
    this.#clock = clock;
    this.#owns = new OwnEntries(clock);
    this.#viewer = new Viewer(clock, this.#owns);
    this.#rooms = new Rooms(this.#viewer);
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
    return this.#told("append", () => this.#append(queue, entry));
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
    if (found === null || found.entry.seq !== seq) return { outcome: "gone" };
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
    if (found === null || (seq !== undefined && found.entry.seq !== seq)) return false;
    try {
      await this.#sessions.any().delete(found.path);
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

  /** The entry of an id in the queue, of whichever client. */
  async #find(queue: string, id: string): Promise<{ path: string; entry: Entry } | null> {
    const session = this.#sessions.any();
    const parent = this.#setup.paths.of(queue);
    const guid = guidOf(id);
    const nodes = await this.#viewer.nodes(session, parent);
    const node = nodes.find((each: Node) => each.guid === guid || each.name === id);
    if (node === undefined) return null;
    const path = `${parent}/${node.name}`;
    const entry = await this.#viewer.read(session, path, node);
    return entry === null ? null : { path, entry };
  }

  async list(queue: string): Promise<readonly Entry[]> {
    this.#assertOpen();
    return this.#told("list", () => this.#viewer.entries(this.#sessions.any(), this.#setup.paths.of(queue)));
  }

  async watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    this.#assertOpen();
    const own = this.#owns.live(queue, self.id);
    let open = true;
    const tell = (): void => {
      if (!open || this.#closing !== null) return;
      open = false;
      onChange(own === undefined ? undefined : this.#fresh(own));
    };
    if (own === undefined || own.seq !== self.seq) {
      tell();
      return () => {};
    }
    const parent = this.#setup.paths.of(queue);
    const end = await this.#told("watch", () =>
      target === null ? this.#rooms.watch(parent, own, tell) : this.#watchLeaving(own, parent, target, tell),
    );
    return () => {
      open = false;
      end();
    };
  }

  /** Tells when a target leaves, and when we do. */
  async #watchLeaving(own: Own, parent: string, target: Entry, tell: () => void): Promise<() => void> {
    void this.#owns.guard(own);
    const ours = this.#owns.find(own.queue, target.id);
    if (ours !== undefined && ours.seq === target.seq) return ours.onGone(tell);
    const neighbours = this.#viewer.neighbours(own.session);
    const node = await this.#nodeOf(own, parent, target);
    const left = (): void => {
      if (node !== null) own.passed(node.name);
      tell();
    };
    if (node === null) return ended(left);
    const path = `${parent}/${node.name}`;
    if ((await neighbours.get(path, node)) === null) return ended(left);
    return neighbours.onLeave(path, left) ?? ended(left);
  }

  async #nodeOf(own: Own, parent: string, target: Entry): Promise<Node | null> {
    if ("node" in target && typeof target.node === "string") return parseNode(target.node);
    const guid = guidOf(target.id);
    const { children } = await own.session.getChildren(parent);
    const nodes = await this.#viewer.inOrder(own.session, parent, children);
    return nodes.find(({ guid: each, name }) => each === guid || name === target.id) ?? null;
  }

  /** What is ahead of us, if that is known without asking: nobody, since all who were have left. */
  #fresh(own: Own): Snapshot | undefined {
    const now = this.#clock.now();
    const alive =
      own.state === "live" && own.guarded && own.session.state === "connected" && own.lifeMs(now) > 0;
    if (!alive || own.ahead === null) return undefined;
    const gone = own.ahead.every((each) => typeof each !== "string" && each.state === "gone");
    return gone ? { self: own.entry(now), ahead: nothingAhead } : undefined;
  }

  async queues(prefix: string): Promise<readonly string[]> {
    this.#assertOpen();
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

function ended(tell: () => void): () => void {
  tell();
  return () => {};
}
