/** What changed between two looks at the queues: who joined, who was granted, who left. */
import type { Entry } from "../core/backend.ts";
import type { QueueView } from "./picture.ts";

/** One change. `granted`: it holds now. `waits`: it joined a queue. `left`: it released, gave up, expired or was evicted. */
export interface Change {
  readonly what: "granted" | "waits" | "left";
  readonly view: QueueView;
  readonly entry: Entry;
}

interface Seen {
  readonly view: QueueView;
  readonly entry: Entry;
  readonly holds: boolean;
}

/** Finds the changes from one look to the next; those who left come first, since they made room. */
export class Changes {
  #seen: ReadonlyMap<string, Seen> = new Map();

  /** What has changed since the last look; at the first one, all that is there. */
  since(views: readonly QueueView[]): readonly Change[] {
    const before = this.#seen;
    const now = new Map(views.flatMap(entriesOf));
    this.#seen = now;
    const left = [...before].filter(([key]) => !now.has(key)).map(([, seen]) => changeOf("left", seen));
    const others = [...now].flatMap(([key, seen]) => {
      const known = before.get(key);
      if (known !== undefined && known.holds === seen.holds) return [];
      return [changeOf(seen.holds ? "granted" : "waits", seen)];
    });
    return [...left, ...others];
  }
}

function entriesOf(view: QueueView): readonly (readonly [string, Seen])[] {
  const seen = (entry: Entry, holds: boolean): readonly [string, Seen] => [
    // An entry that was evicted and joined again has the same id and another seq.
    `${entry.seq} ${entry.id} ${view.queue}`,
    { view, entry, holds },
  ];
  return [...view.held.map((entry) => seen(entry, true)), ...view.waiting.map((entry) => seen(entry, false))];
}

function changeOf(what: Change["what"], { view, entry }: Seen): Change {
  return { what, view, entry };
}
