/**
 * All entries that this client has made: which is which, whether somebody else took one out, and how they are taken out. A
 * session keeps its nodes for as long as it lives; that an entry which nobody renews goes earlier is our own doing.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import { hasZooCode, type ZooSession } from "./client/index.ts";
import type { Own } from "./own.ts";

/** After this long an entry is watched, so that we hear of it when somebody takes it out; most do not live as long. */
const guardAfterMs = 50;

/** All entries of one client. */
export class OwnEntries {
  readonly #clock: Clock;
  readonly #byQueue = new Map<string, Map<string, Own>>();
  readonly #byPath = new Map<string, Own>();
  /** Entries that others have taken out, and until when their owner may ask. */
  readonly #evicted = new Map<string, { seq: bigint; until: number }>();
  readonly #unguarded = new Set<Own>();
  #guardTimer: Timer | null = null;
  #expiryTimer: Timer | null = null;
  #expiryAt = Number.POSITIVE_INFINITY;
  /** Told when somebody else, or the end of its session, took an entry out. */
  onEvicted: ((queue: string, id: string) => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether we have an entry in a queue. */
  has(queue: string): boolean {
    return this.#byQueue.has(queue);
  }

  /** The entry with an id, if it is ours and lives. */
  live(queue: string, id: string): Own | undefined {
    const own = this.#byQueue.get(queue)?.get(id);
    return own?.state === "live" ? own : undefined;
  }

  /** The entry with an id, if it is ours and its node may still be there. */
  find(queue: string, id: string): Own | undefined {
    return this.#byQueue.get(queue)?.get(id);
  }

  /** The entry that a node is, if it is ours and its node may still be there. */
  at(path: string): Own | undefined {
    return this.#byPath.get(path);
  }

  *all(): Generator<Own, void> {
    yield* this.#byPath.values();
  }

  wasEvicted(id: string, seq: bigint): boolean {
    return this.#evicted.get(id)?.seq === seq;
  }

  add(own: Own): void {
    const entries = this.#byQueue.get(own.queue);
    if (entries === undefined) this.#byQueue.set(own.queue, new Map([[own.asked.id, own]]));
    else entries.set(own.asked.id, own);
    this.#byPath.set(own.path, own);
    this.#unguarded.add(own);
    this.#guardTimer ??= this.#clock.after(guardAfterMs, () => this.#guardAll());
    this.#expireBy(own.expiresAt);
  }

  /** Makes sure that we hear of it when somebody else takes the entry out. */
  guard(own: Own): Promise<void> {
    this.#unguarded.delete(own);
    own.guarding ??= this.#guard(own);
    return own.guarding;
  }

  /** Takes an entry out. Goes on in the background until its node is gone, or its session. */
  delete(own: Own, evict: boolean): Promise<boolean> {
    if (own.state === "live") own.state = "leaving";
    own.deletion ??= this.#delete(own, evict);
    return own.deletion;
  }

  /** A session is over: none of its entries is ours any more. */
  sessionLost(session: ZooSession): void {
    const lost = [...this.all()].filter((own) => own.session === session);
    for (const own of lost) {
      this.#end(own, false);
      this.onEvicted?.(own.queue, own.asked.id);
    }
  }

  /** Cancels the timers; nobody is told anything any more. */
  rest(): void {
    this.onEvicted = null;
    this.#guardTimer?.cancel();
    this.#expiryTimer?.cancel();
    this.#unguarded.clear();
    this.#byQueue.clear();
    this.#byPath.clear();
  }

  async #guard(own: Own): Promise<void> {
    let stands = true;
    try {
      const stat = await own.session.exists(own.path, ({ type }) => {
        stands = false;
        own.guarded = false;
        own.guarding = null;
        if (type === "deleted") this.#takenOut(own);
        else if (own.state === "live") void this.guard(own);
      });
      if (stat === null || stat.czxid !== own.seq) this.#takenOut(own);
      else if (stands) own.guarded = true;
      else await own.guarding;
    } catch {
      // The session says what has become of it; until then nothing is known.
      own.guarding = null;
      if (own.state === "live") this.#unguarded.add(own);
    }
  }

  /** Guards those that have lived for a while. */
  #guardAll(): void {
    this.#guardTimer = null;
    const young = [...this.#unguarded];
    this.#unguarded.clear();
    for (const own of young) if (own.state === "live") void this.guard(own);
  }

  /** Somebody else has deleted the node of a live entry. */
  #takenOut(own: Own): void {
    if (own.state !== "live") return;
    own.left = true;
    this.#end(own, true);
    this.onEvicted?.(own.queue, own.asked.id);
  }

  async #delete(own: Own, evict: boolean): Promise<boolean> {
    let deleted = true;
    try {
      await own.session.delete(own.path);
      own.left = true;
    } catch (error) {
      deleted = await this.#deleteAgain(own, error);
    }
    this.#end(own, evict && deleted);
    return deleted;
  }

  /** Goes on after a try that came to nothing, for as long as a further one may help. */
  async #deleteAgain(own: Own, failure: unknown): Promise<boolean> {
    let error = failure;
    for (let doubtful = false; ;) {
      // Where an earlier try may have done it, it is taken to have done it.
      own.left = hasZooCode(error, "noNode");
      if (own.left) return doubtful;
      if (!hasZooCode(error, "connectionLoss")) return false;
      if (!error.unsent) doubtful = true;
      try {
        await own.session.delete(own.path);
        own.left = true;
        return true;
      } catch (again) {
        error = again;
      }
    }
  }

  #end(own: Own, evicted: boolean): void {
    if (own.state === "gone") return;
    const { queue, seq, expiresAt } = own;
    const { id } = own.asked;
    const entries = this.#byQueue.get(queue);
    if (entries?.get(id) === own) entries.delete(id);
    if (entries?.size === 0) this.#byQueue.delete(queue);
    if (this.#byPath.get(own.path) === own) this.#byPath.delete(own.path);
    this.#unguarded.delete(own);
    if (evicted) this.#evicted.set(id, { seq, until: expiresAt });
    if (evicted) this.#expireBy(expiresAt);
    own.end();
  }

  #expireBy(at: number): void {
    if (at >= this.#expiryAt) return;
    this.#expiryTimer?.cancel();
    this.#expiryAt = at;
    this.#expiryTimer = this.#clock.after(at - this.#clock.now(), () => this.#expire());
  }

  /** Takes out what nobody has renewed in time. */
  #expire(): void {
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    this.#expiryAt = next;
    for (const own of this.all()) {
      if (own.state !== "live") continue;
      if (own.expiresAt <= now) void this.delete(own, false);
      else next = Math.min(next, own.expiresAt);
    }
    for (const [id, { until }] of this.#evicted) {
      if (until <= now) this.#evicted.delete(id);
      else next = Math.min(next, until);
    }
    if (next < Number.POSITIVE_INFINITY) this.#expireBy(next);
  }
}
