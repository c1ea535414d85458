/** The arithmetic of majorities: when a vote is decided, what its answer is worth, and for how long; pure. */

/** How many of so many nodes are a majority: any two majorities share a node. */
export function quorumOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** What a node's answer is worth: it agrees, it disagrees, or nothing can be made of it. */
export type Vote = "yes" | "no" | "void";

/** `reached`: a majority agrees. `impossible`: whatever is still to come, none will. `open`: neither yet. */
export type Verdict = "reached" | "impossible" | "open";

/** How many nodes there may be: each is a bit of a number. */
export const mostNodes = 31;

/** Votes of so many nodes, each counted once. */
export class Tally {
  readonly nodes: number;
  readonly quorum: number;
  /** A bit for each node that has voted. */
  #voted = 0;
  #yes = 0;
  #no = 0;
  #void = 0;

  constructor(nodes: number) {
    this.nodes = nodes;
    this.quorum = quorumOf(nodes);
  }

  get yes(): number {
    return this.#yes;
  }

  get no(): number {
    return this.#no;
  }

  get void(): number {
    return this.#void;
  }

  /** How many have not voted. */
  get open(): number {
    return this.nodes - this.#yes - this.#no - this.#void;
  }

  /** Whether this node has voted. */
  has(node: number): boolean {
    return (this.#voted & (1 << node)) !== 0;
  }

  /** Counts the vote of a node; a second one of the same node changes nothing. */
  count(node: number, vote: Vote): Verdict {
    if (!this.has(node)) {
      this.#voted |= 1 << node;
      if (vote === "yes") this.#yes += 1;
      else if (vote === "no") this.#no += 1;
      else this.#void += 1;
    }
    return this.verdict;
  }

  get verdict(): Verdict {
    if (this.#yes >= this.quorum) return "reached";
    return this.#yes + this.open < this.quorum ? "impossible" : "open";
  }

  /** Whether a majority has voted, and none of them can agree any more, whatever those say that have not. */
  get refused(): boolean {
    return this.verdict === "impossible" && this.#yes + this.#no >= this.quorum;
  }

  /** Whether so many votes are void that no majority could agree on anything. */
  get unable(): boolean {
    return this.nodes - this.#void < this.quorum;
  }

  /**
   * Whether a majority surely does not agree: those that have not voted, and those of which nothing is known, would not
   * make one.
   */
  get surelyNot(): boolean {
    return this.#yes + this.open + this.#void < this.quorum;
  }
}

/** For how long a majority lasts of which each member lasts so long: as long as the last that it cannot do without. */
export function lifeOf(lives: readonly number[], quorum: number): number {
  return lives.toSorted((a, b) => b - a)[quorum - 1] ?? 0;
}
