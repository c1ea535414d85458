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
import { Appends } from "./appends.ts";
import { type Acl, hasZooCode, type ZooSession } from "./client/index.ts";
import type { NodeEntry } from "./data.ts";
import { asFailure, closedError } from "./failures.ts";
import type { Layout } from "./nodes.ts";
import { OwnEntries } from "./owns.ts";
import type { Paths } from "./paths.ts";
import { Renewals } from "./renewals.ts";
import { Sessions, type SessionsOptions } from "./sessions.ts";
import { Strays } from "./strays.ts";
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

/** One client of an ensemble. */
export class ZooKeeperBackend implements Backend, Browsable, Examinable {
  readonly name = "zookeeper";
  readonly place: string;
  readonly traits: Traits = zookeeperTraits;
  readonly #setup: ZooKeeperSetup;
  readonly #clock: Clock;
  readonly #sessions: Sessions;
  readonly #owns: OwnEntries;
  readonly #viewer: Viewer;
  readonly #strays: Strays;
  readonly #watcher: Watcher;
  readonly #appends: Appends;
  readonly #renewals: Renewals;
  #closing: Promise<void> | null = null;

  /** @internal Made by zookeeperBackend. */
  constructor(setup: ZooKeeperSetup) {
    const { clock, paths, layout, acl } = setup;
    this.place = setup.hosts.map(({ host, port }) => `${host}:${port}`).join();
    this.#setup = setup;
    this.#clock = clock;
    this.#owns = new OwnEntries(clock);
    this.#viewer = new Viewer(clock, this.#owns);
    this.#strays = new Strays(clock, this.#owns, this.#viewer);
    this.#watcher = new Watcher(clock, paths, this.#owns, this.#viewer);
    this.#sessions = new Sessions({
      ...setup,
      onLost: (session) => this.#lost(session),
      inUse: (session) => [...this.#owns.all()].some((own) => own.session === session),
    });
    const isLost = (id: bigint): boolean => this.#sessions.isLost(id);
    const ours = { owns: this.#owns, strays: this.#strays, viewer: this.#viewer };
    const context = { clock, paths, layout, acl, ...ours, isLost };
    this.#appends = new Appends(context, this.#sessions);
    this.#renewals = new Renewals(clock, this.#owns, (queue, id) => anew(() => this.#find(queue, id)));
  }

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    if (this.#closing !== null) return Promise.reject(closedError());
    return this.#appends.append(queue, entry).catch((error: unknown) => this.#fail("append", error));
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    this.#assertOpen();
    const answers = await this.#renewals.renew(renewals);
    if (answers.some(({ outcome }) => outcome === "unknown")) this.#assertOpen();
    return answers;
  }

  async remove(queue: string, id: string, evict = false, seq?: bigint): Promise<boolean> {
    this.#assertOpen();
    const own = this.#owns.find(queue, id);
    if (own === undefined) return this.#looked("remove", () => this.#removeOther(queue, id, seq));
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
    await this.#appends.answered(queue);
    return this.#looked("list", () =>
      this.#viewer.entries(this.#sessions.any(), this.#setup.paths.of(queue)),
    );
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
    await this.#appends.answered();
    return this.#looked("queues", () => this.#viewer.queues(this.#sessions.any(), this.#setup.paths, prefix));
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
    this.#strays.rest();
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
    this.#strays.sessionLost(session);
    this.#viewer.neighbours(session).forget();
  }

  /** Work that any session will do for. */
  async #looked<T>(what: string, work: () => Promise<T>): Promise<T> {
    return this.#told(what, () => anew(work));
  }

  async #told<T>(what: string, work: () => Promise<T> | T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      return this.#fail(what, error);
    }
  }

  #fail(what: string, error: unknown): never {
    throw this.#closing === null ? asFailure(error, what) : closedError();
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw closedError();
  }
}

/** Work that any session will do for: where its session is over before anything was sent, another one does it. */
function anew<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    if (!hasZooCode(error, "sessionExpired") || !error.unsent) throw error;
    return work();
  });
}
