/** Who wants to hear of changes of which nodes: each is told once, as the servers do it. */
import type { WatchEvent } from "./wire.ts";

/** Told once of a change of a node, or of its children. */
export type WatchListener = (event: WatchEvent) => void;

/** What a watch stands on: a node that was there, one that was not, or the children of a node. */
export type WatchKind = "data" | "missing" | "children";

const kindsOf: Readonly<Record<WatchEvent["type"], readonly WatchKind[]>> = {
  created: ["missing", "data"],
  deleted: ["data", "missing", "children"],
  changed: ["data", "missing"],
  children: ["children"],
  other: [],
};

/** The watches of one session; they outlive its connections. */
export class Watches {
  /** By the servers' paths; each listener has the path as its owner calls the node. */
  readonly #byKind: Readonly<Record<WatchKind, Map<string, Map<WatchListener, string>>>> = {
    data: new Map(),
    missing: new Map(),
    children: new Map(),
  };

  add(kind: WatchKind, path: string, ownPath: string, listener: WatchListener): void {
    const listeners = this.#byKind[kind].get(path);
    if (listeners === undefined) this.#byKind[kind].set(path, new Map([[listener, ownPath]]));
    else listeners.set(listener, ownPath);
  }

  /** Forgets a listener; what the server keeps is forgotten when it fires. */
  remove(path: string, listener: WatchListener): void {
    for (const watches of Object.values(this.#byKind)) {
      const listeners = watches.get(path);
      if (listeners?.delete(listener) && listeners.size === 0) watches.delete(path);
    }
  }

  tell(event: WatchEvent): void {
    for (const kind of kindsOf[event.type]) {
      const listeners = this.#byKind[kind].get(event.path);
      if (listeners === undefined) continue;
      this.#byKind[kind].delete(event.path);
      for (const [listener, path] of listeners) listener({ ...event, path });
    }
  }

  paths(kind: WatchKind): readonly string[] {
    return [...this.#byKind[kind].keys()];
  }

  get isEmpty(): boolean {
    return Object.values(this.#byKind).every(({ size }) => size === 0);
  }

  clear(): void {
    for (const watches of Object.values(this.#byKind)) watches.clear();
  }
}
