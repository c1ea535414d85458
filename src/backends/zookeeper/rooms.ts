/** Waiters for permits: one watch on a queue's children serves all of them, and only those are told who have room now. */
import { counted } from "../../core/grant.ts";
import type { WatchListener, ZooSession } from "./client/index.ts";
import type { Own } from "./own.ts";
import type { Viewer } from "./view.ts";

interface Waiter {
  readonly own: Own;
  readonly tell: () => void;
}

/** One queue with waiters. */
interface Room {
  readonly waiters: Set<Waiter>;
  looking: boolean;
  /** Something has changed since the look that is under way began. */
  changed: boolean;
}

/** The queues of one client in which some wait for permits. */
export class Rooms {
  readonly #viewer: Viewer;
  readonly #rooms = new Map<string, Room>();

  constructor(viewer: Viewer) {
    this.#viewer = viewer;
  }

  /** Tells once, when an entry has room, or may have. */
  watch(parent: string, own: Own, tell: () => void): () => void {
    const room = this.#rooms.get(parent) ?? { waiters: new Set(), looking: false, changed: false };
    const waiter = { own, tell };
    this.#rooms.set(parent, room);
    room.waiters.add(waiter);
    const off = own.onGone(() => this.#tell(parent, room, waiter));
    void this.#look(parent, room);
    return () => {
      off();
      this.#drop(parent, room, waiter);
    };
  }

  async #look(parent: string, room: Room): Promise<void> {
    room.changed = true;
    if (room.looking) return;
    room.looking = true;
    while (room.changed && room.waiters.size > 0) {
      room.changed = false;
      const [first] = room.waiters;
      if (first === undefined) break;
      try {
        await this.#judge(parent, room, first.own.session);
      } catch {
        // Whoever waits has to look for itself.
        for (const waiter of room.waiters) this.#tell(parent, room, waiter);
      }
    }
    room.looking = false;
  }

  async #judge(parent: string, room: Room, session: ZooSession): Promise<void> {
    const heard: WatchListener = () => void this.#look(parent, room);
    const { children } = await session.getChildren(parent, heard);
    const nodes = await this.#viewer.inOrder(session, parent, children);
    const weights = new Map<string, number>();
    let weight = 0;
    for (const node of nodes) {
      weights.set(node.name, weight);
      weight += node.weight;
    }
    for (const waiter of room.waiters) {
      const ahead = weights.get(waiter.own.node.name);
      const fits = ahead === undefined || grants(waiter.own, ahead);
      if (fits) this.#tell(parent, room, waiter);
    }
  }

  #tell(parent: string, room: Room, waiter: Waiter): void {
    if (!room.waiters.has(waiter)) return;
    this.#drop(parent, room, waiter);
    waiter.tell();
  }

  #drop(parent: string, room: Room, waiter: Waiter): void {
    room.waiters.delete(waiter);
    if (room.waiters.size === 0 && this.#rooms.get(parent) === room) this.#rooms.delete(parent);
  }
}

function grants({ asked }: Own, weight: number): boolean {
  return counted.grants(asked, { count: 0, weight, nearest: null, nearestWriter: null });
}
