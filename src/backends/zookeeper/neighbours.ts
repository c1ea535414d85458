/** Nodes of others that stand near ours: what they are, and word when they leave. One question gives both. */
import type { Clock } from "../../core/clock.ts";
import { hasZooCode, type WatchEvent, type ZooSession } from "./client/index.ts";
import { type NodeEntry, readEntry } from "./data.ts";
import type { Node } from "./nodes.ts";

/** A node on which a watch stands. */
interface Neighbour {
  readonly entry: NodeEntry;
  readonly listeners: Set<() => void>;
}

/** The neighbours that one session watches. */
export class Neighbours {
  readonly #session: ZooSession;
  readonly #clock: Clock;
  readonly #known = new Map<string, Neighbour>();

  constructor(session: ZooSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  /** What a node is, or null if it has left. From then on its leaving is heard. */
  async get(path: string, node: Node): Promise<NodeEntry | null> {
    const known = this.#known.get(path);
    if (known !== undefined) return known.entry;
    return this.#fetch(path, node, new Set());
  }

  /** Calls back when a node leaves that `get` has found; null if that has happened already. */
  onLeave(path: string, listener: () => void): (() => void) | null {
    const known = this.#known.get(path);
    if (known === undefined) return null;
    known.listeners.add(listener);
    return () => known.listeners.delete(listener);
  }

  /** Nothing is heard any more: all who wait are to look for themselves. */
  forget(): void {
    const known = [...this.#known.values()];
    this.#known.clear();
    for (const { listeners } of known) for (const listener of listeners) listener();
  }

  async #fetch(path: string, node: Node, listeners: Set<() => void>): Promise<NodeEntry | null> {
    // Its end may come with the same bytes as the answer, before the answer is taken.
    let early: WatchEvent["type"] | null = null;
    let answered = false;
    const heard = ({ type }: WatchEvent): void => {
      if (answered) this.#heard(path, node, type);
      else early = type;
    };
    try {
      const { data, stat } = await this.#session.getData(path, heard);
      answered = true;
      if (early !== null) return await this.#fetch(path, node, listeners);
      for (const listener of this.#known.get(path)?.listeners ?? []) listeners.add(listener);
      const entry = readEntry(node, data, stat, this.#clock.wallMs());
      this.#known.set(path, { entry, listeners });
      return entry;
    } catch (error) {
      if (!hasZooCode(error, "noNode")) throw error;
      for (const listener of listeners) listener();
      return null;
    }
  }

  #heard(path: string, node: Node, type: WatchEvent["type"]): void {
    const known = this.#known.get(path);
    if (known === undefined) return;
    this.#known.delete(path);
    if (type === "deleted") this.#tell(known);
    // Its data was changed, as a request to give a lock up does: it is still there.
    else this.#fetch(path, node, known.listeners).catch(() => this.#tell(known));
  }

  #tell({ listeners }: Neighbour): void {
    for (const listener of listeners) listener();
  }
}
