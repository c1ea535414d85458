/** What attempts in vain leave on nodes: they are told to let go of it, and the next attempt of the same entry must not be hit by that. */
import type { Debt } from "./debts.ts";
import type { Fleet } from "./fleet.ts";
import type { Node } from "./node.ts";

/** What nodes are told to let go of. */
export interface Leftover {
  readonly debt: Debt;
  /** Resolves when each node that is there has done it or is not waited for any more: true if all have done it. */
  readonly over: Promise<boolean>;
}

/** Tells nodes to let go of what they may have of an attempt. Nobody held it: nobody is told. */
export function letGo(fleet: Fleet, nodes: readonly Node[], key: string, id: string): Leftover {
  const debt: Debt = { key, id, seq: "" };
  const over = new Promise<boolean>((resolve) => {
    // One that is just connecting may still have the attempt before it: it hears this after that, and is not waited for.
    const waited = nodes.filter((node) => node.isUp);
    let open = waited.length;
    let all = open === nodes.length;
    const answered = (): void => {
      open -= 1;
      if (open === 0) resolve(all);
    };
    const failed = (): void => {
      all = false;
      answered();
    };
    if (open === 0) resolve(all);
    for (const node of nodes) {
      const poll = waited.includes(node) ? { answered, failed } : { answered: () => {}, failed: () => {} };
      fleet.callOne(node, "remove", [key], [id, "", "0"], { owed: debt, ...poll });
    }
  });
  return { debt, over };
}

/** How many are remembered at most that some node has not been heard to let go of: as many as a node owes. */
const mostLeftovers = 10_000;

/** What is still leaving the nodes. */
export class Leftovers {
  readonly #byId = new Map<string, Leftover>();

  /** Remembers it until all nodes have let go, or for as long as there is room. */
  add(leftover: Leftover): void {
    const { id } = leftover.debt;
    this.#byId.delete(id);
    this.#byId.set(id, leftover);
    const [oldest] = this.#byId.size > mostLeftovers ? this.#byId.keys() : [];
    if (oldest !== undefined) this.#byId.delete(oldest);
    void leftover.over.then((all) => {
      if (all && this.#byId.get(id) === leftover) this.#byId.delete(id);
    });
  }

  /** Resolves when an entry can be asked for again; null if it can be now. A node that lets go later must not do it any more. */
  clear(id: string): Promise<void> | null {
    const leftover = this.#byId.get(id);
    return leftover === undefined ? null : this.#clear(id, leftover);
  }

  async #clear(id: string, { debt, over }: Leftover): Promise<void> {
    await over;
    debt.isPast = true;
    this.#byId.delete(id);
  }
}
