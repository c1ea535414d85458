/** Renewing: shows that entries are still there and that their sessions live at the leader. Sending pings is left to the client. */
import type { Renewal, Renewed } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import type { ZooSession } from "./client/index.ts";
import type { NodeEntry } from "./data.ts";
import type { OwnEntries } from "./owns.ts";

/** The renewals of one client. */
export class Renewals {
  readonly #clock: Clock;
  readonly #owns: OwnEntries;
  readonly #find: (queue: string, id: string) => Promise<NodeEntry | null>;

  constructor(
    clock: Clock,
    owns: OwnEntries,
    /** The entry of an id, of whichever client, as it is at the leader. */
    find: (queue: string, id: string) => Promise<NodeEntry | null>,
  ) {
    this.#clock = clock;
    this.#owns = owns;
    this.#find = find;
  }

  /** As the seam's renew; what went wrong is an answer, too. */
  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    const proofs = new Map<ZooSession, Promise<unknown>>();
    return Promise.all(
      renewals.map(async (renewal) => {
        try {
          return await this.#renew(renewal, proofs);
        } catch (cause) {
          return { outcome: "unknown", cause } as const;
        }
      }),
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
}
