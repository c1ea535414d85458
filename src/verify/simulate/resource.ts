/**
 * What the locks protect: for each lock a list that is read, changed and written back, once with a guard that refuses
 * what is older than the newest token it has seen, and once without. Its own log is the truth about writes.
 */
import type { History } from "../history.ts";

interface Shelf {
  values: readonly string[];
  newest: bigint;
}

/** Guarded and unguarded lists, by name. */
export class Resource {
  /** Acknowledged writes to unguarded lists that a later write has undone: what fencing prevents. */
  undone = 0;
  readonly #history: History;
  readonly #shelves = new Map<string, Shelf>();

  constructor(history: History) {
    this.#history = history;
  }

  get names(): readonly string[] {
    return [...this.#shelves.keys()];
  }

  /** What is there. A guarded read counts as a use of the token, so that no older write can slip in behind it. */
  read(name: string, token: bigint | null): readonly string[] | null {
    const shelf = this.#shelf(name);
    if (token !== null && token < shelf.newest) return null;
    if (token !== null) shelf.newest = token;
    return shelf.values;
  }

  /** Replaces what is there. False if the guard refuses. */
  write(name: string, token: bigint | null, values: readonly string[]): boolean {
    const shelf = this.#shelf(name);
    const accepted = token === null || token >= shelf.newest;
    if (token !== null) {
      const type = accepted ? "ok" : "fail";
      this.#history.record({ proc: "resource", f: "guard", type, resource: name, token });
      if (accepted) shelf.newest = token;
    }
    if (accepted) {
      if (token === null) this.undone += shelf.values.filter((value) => !values.includes(value)).length;
      shelf.values = values;
    }
    return accepted;
  }

  #shelf(name: string): Shelf {
    let shelf = this.#shelves.get(name);
    if (shelf === undefined) this.#shelves.set(name, (shelf = { values: [], newest: -1n }));
    return shelf;
  }
}
