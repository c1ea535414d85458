/** Tells who waits when the entry that matters leaves; where nobody else was ahead, that is known without a further question. */
import type { Entry, Snapshot } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { nothingAhead } from "../../core/grant.ts";
import type { NodeEntry } from "./data.ts";
import { type Node, parseNode } from "./nodes.ts";
import type { Own } from "./own.ts";
import type { OwnEntries } from "./owns.ts";
import type { Paths } from "./paths.ts";
import { Rooms } from "./rooms.ts";
import type { Viewer } from "./view.ts";

/** The watches of one client. */
export class Watcher {
  readonly #clock: Clock;
  readonly #paths: Paths;
  readonly #owns: OwnEntries;
  readonly #viewer: Viewer;
  readonly #rooms: Rooms;

  constructor(clock: Clock, paths: Paths, owns: OwnEntries, viewer: Viewer) {
    this.#clock = clock;
    this.#paths = paths;
    this.#owns = owns;
    this.#viewer = viewer;
    this.#rooms = new Rooms(viewer);
  }

  /** As the seam's watch; tells once at most. */
  async watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    const own = this.#owns.live(queue, self.id);
    if (own === undefined || own.seq !== self.seq) return told(onChange);
    let open = true;
    const tell = (): void => {
      if (!open) return;
      open = false;
      onChange(this.#fresh(own));
    };
    const parent = this.#paths.of(queue);
    const end =
      target === null
        ? this.#rooms.watch(parent, own, tell)
        : await this.#watchLeaving(own, parent, target, tell);
    return () => {
      open = false;
      end();
    };
  }

  async #watchLeaving(own: Own, parent: string, target: Entry, tell: () => void): Promise<() => void> {
    // So that we hear of our own end, too, before we hear that it is our turn.
    void this.#owns.guard(own);
    const ours = this.#owns.find(own.queue, target.id);
    if (ours !== undefined && ours.seq === target.seq) return ours.onGone(tell);
    const neighbours = this.#viewer.neighbours(own.session);
    const node = await this.#nodeOf(own, parent, target);
    if (node === null) return told(tell);
    const left = (): void => {
      own.passed(node.name);
      tell();
    };
    const path = `${parent}/${node.name}`;
    if ((await neighbours.get(path, node)) === null) return told(left);
    return neighbours.onLeave(path, left) ?? told(left);
  }

  /** The node of an entry: known if the entry comes from here, else looked for. */
  async #nodeOf(own: Own, parent: string, target: Entry): Promise<Node | null> {
    const entry = isOfNode(target) ? target : await this.#viewer.find(own.session, parent, target.id);
    return entry === null ? null : parseNode(entry.node);
  }

  /** What is ahead of us, if that is known without asking: nobody, since all who were have left. */
  #fresh(own: Own): Snapshot | undefined {
    const now = this.#clock.now();
    const { state, guarded, session, ahead } = own;
    // Guarded: had our own node been taken out before, we would know by now, unless a new server is still telling.
    const heard = guarded && session.state === "connected" && session.caughtUp;
    if (state !== "live" || !heard || own.lifeMs(now) <= 0 || ahead === null) return undefined;
    const allGone = ahead.every((each) => typeof each !== "string" && each.state === "gone");
    return allGone ? { self: own.entry(now), ahead: nothingAhead } : undefined;
  }
}

function isOfNode(entry: Entry): entry is NodeEntry {
  return "node" in entry && typeof entry.node === "string";
}

function told(tell: () => void): () => void {
  tell();
  return () => {};
}
