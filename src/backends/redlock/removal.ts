/** Takes an entry out on all nodes; it was there if a majority had it. */
import { Ballot, type Question } from "./ballot.ts";
import type { Debt } from "./debts.ts";
import { tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import type { Node } from "./node.ts";
import type { Vote } from "./quorum.ts";
import { releaseValue } from "./short.ts";
import { valueOf } from "./values.ts";

/** What is taken out. */
export interface Leaving {
  readonly key: string;
  readonly id: string;
  /** Only the entry with this seq is meant; "" for any. */
  readonly seq: string;
}

/** Releases an entry; `rest` is what its value ends with, if that is known. Rejects with LOCK_OUTCOME_UNKNOWN if too few nodes said whether they had it. */
export function remove(fleet: Fleet, leaving: Leaving, rest: string | undefined): Promise<boolean> {
  const { key, id, seq } = leaving;
  return new Promise((resolve, reject) => {
    const ballot = new Ballot(
      fleet.nodes,
      new Removal(fleet.nodes.length, resolve, reject, { key, id, seq }),
    );
    if (rest === undefined || seq === "") return fleet.call("remove", [key], [id, seq, "1"], ballot);
    const value = valueOf(id, seq, rest);
    fleet.call("release", [key], [value], ballot, releaseValue(key, id, value));
  });
}

/**
 * Evicts the entry of another client: on one node first, so that of several who do it at once one is ahead of the others
 * everywhere, and is the one who did it.
 */
export function evict(fleet: Fleet, leaving: Leaving, evictedKey: string): Promise<boolean> {
  const { key, id, seq } = leaving;
  return new Promise((resolve, reject) => {
    const [first] = fleet.nodes.filter((node) => node.isUp);
    const ballot = new Ballot(fleet.nodes, new Removal(fleet.nodes.length, resolve, reject));
    if (first === undefined) return fleet.call("evict", [key, evictedKey], [id, seq], ballot);
    const begun = (): void => {
      for (const node of fleet.nodes)
        if (node !== first) fleet.callOne(node, "evict", [key, evictedKey], [id, seq], ballot);
    };
    fleet.callOne(first, "evict", [key, evictedKey], [id, seq], {
      answered: (node, answer) => {
        ballot.answered(node, answer);
        begun();
      },
      failed: (node, error) => {
        ballot.failed(node, error);
        begun();
      },
    });
  });
}

/** Who had it? */
class Removal implements Question {
  // Half of an even number is enough where nobody else can have a majority; of two halves, the one with the first node.
  readonly against: Question["against"];
  readonly owed: Debt | undefined;
  readonly #nodes: number;
  readonly #resolve: (removed: boolean) => void;
  readonly #reject: (error: unknown) => void;
  #firstHadIt = false;

  constructor(
    nodes: number,
    resolve: (removed: boolean) => void,
    reject: (error: unknown) => void,
    owed?: Debt,
  ) {
    this.against = nodes % 2 === 0 ? "all votes" : "surely not";
    this.owed = owed;
    this.#nodes = nodes;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  read(answer: string, { index }: Node): Vote {
    if (answer !== "+") return "no";
    if (index === 0) this.#firstHadIt = true;
    return "yes";
  }

  decided({ tally, failures }: Ballot): void {
    const { verdict, surelyNot, yes, no, quorum } = tally;
    const half = this.#firstHadIt && 2 * yes === this.#nodes && no === yes;
    if (verdict === "reached" || half) this.#resolve(true);
    else if (surelyNot) this.#resolve(false);
    else this.#reject(tooFew("LOCK_OUTCOME_UNKNOWN", failures, this.#nodes, quorum));
  }
}
