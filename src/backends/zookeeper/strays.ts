/**
 * Nodes that may have been made without our hearing of it. Such a node stays for as long as its session, and nobody else takes it out: so
 * this does, at the end of its ttl, unless an append with its id has found it before.
 */
import type { NewEntry } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { hasZooCode, type ZooSession } from "./client/index.ts";
import { entriesAmong, guidOf } from "./nodes.ts";
import type { OwnEntries } from "./owns.ts";
import type { Viewer } from "./view.ts";

/** A node that may be there. */
interface Stray {
  readonly parent: string;
  readonly id: string;
  readonly session: ZooSession;
  timer: Timer | null;
}

/** After how long one that could not be looked for is looked for again, in milliseconds. */
const againMs = 250;

/** The strays of one client. */
export class Strays {
  readonly #clock: Clock;
  readonly #owns: OwnEntries;
  readonly #viewer: Viewer;
  readonly #strays = new Set<Stray>();

  constructor(clock: Clock, owns: OwnEntries, viewer: Viewer) {
    this.#clock = clock;
    this.#owns = owns;
    this.#viewer = viewer;
  }

  /** An append has failed whose node may be there. */
  add(parent: string, { id, ttlMs }: NewEntry, session: ZooSession): void {
    const stray: Stray = { parent, id, session, timer: null };
    this.#strays.add(stray);
    this.#lookIn(ttlMs, stray);
  }

  /** An append with this id goes on. True if its node may be there: then it is for the append to look for it. */
  take(parent: string, id: string, session: ZooSession): boolean {
    if (this.#strays.size === 0) return false;
    const found = [...this.#strays].filter(
      (stray) => stray.id === id && stray.parent === parent && stray.session === session,
    );
    for (const stray of found) this.#forget(stray);
    return found.length > 0;
  }

  /** A session is over, and its nodes with it. */
  sessionLost(session: ZooSession): void {
    for (const stray of this.#strays) if (stray.session === session) this.#forget(stray);
  }

  /** Looks for none any more: their sessions end. */
  rest(): void {
    for (const stray of this.#strays) this.#forget(stray);
  }

  #forget(stray: Stray): void {
    stray.timer?.cancel();
    this.#strays.delete(stray);
  }

  #lookIn(ms: number, stray: Stray): void {
    stray.timer = this.#clock.after(ms, () => void this.#takeOut(stray));
  }

  async #takeOut(stray: Stray): Promise<void> {
    try {
      const { session, parent, id } = stray;
      // What was under way before a change of servers is refused by the leader or done before this is answered.
      const entries = entriesAmong(await this.#viewer.children(session, parent));
      for (const { name } of entries.filter(({ guid }) => guid === guidOf(id))) {
        const path = `${parent}/${name}`;
        const stat = await session.exists(path);
        // An append has taken it over since.
        if (!this.#strays.has(stray)) return;
        const isStray = stat?.ephemeralOwner === session.id && this.#owns.at(path) === undefined;
        if (isStray) await session.delete(path);
      }
      this.#strays.delete(stray);
    } catch (error) {
      if (hasZooCode(error, "noNode") || hasZooCode(error, "connectionLoss")) {
        if (this.#strays.has(stray)) this.#lookIn(againMs, stray);
      } else this.#strays.delete(stray);
    }
  }
}
