/** One call to all nodes as a vote: counts the answers, remembers why some are void, and calls back once it is decided. */
import type { LockError } from "../../core/errors.ts";
import type { Debt } from "./debts.ts";
import type { NodeFailure } from "./failures.ts";
import type { Node } from "./node.ts";
import { Tally, type Vote } from "./quorum.ts";

/** What a ballot is about. */
export interface Question {
  /** What an answer says. Who does not count can still disagree; who comes after the decision is heard, but for a plain "+". */
  read(answer: string, node: Node, counts: boolean): Vote;
  /** Called once. What is decided is written in the tally. */
  decided(ballot: Ballot): void;
  /**
   * What decides against it: that a majority has voted and none can agree, or too few are left that can vote, so that who is told
   * that others have it is not told so by a few; that no majority may have agreed (void votes may have been in favour); or all votes.
   */
  readonly against: "refused" | "surely not" | "all votes";
  readonly owed?: Debt | undefined;
}

/** Counts the votes of all nodes. */
export class Ballot {
  readonly tally: Tally;
  #failures: NodeFailure[] | null = null;
  readonly owed: Debt | undefined;
  readonly #nodes: readonly Node[];
  readonly #question: Question;
  #over = false;

  constructor(nodes: readonly Node[], question: Question) {
    this.tally = new Tally(nodes.length);
    this.owed = question.owed;
    this.#nodes = nodes;
    this.#question = question;
  }

  answered(index: number, answer: string): void {
    const node = this.#nodes[index];
    // It is decided, and this agrees: the usual case of those that are a little later.
    if (node === undefined || (this.#over && answer === "+")) return;
    // Who may have forgotten something can agree to everything.
    const unable = node.voidBecause;
    const vote = this.#question.read(answer, node, unable === null);
    if (unable === null || vote !== "yes") this.#count(index, vote);
    else this.failed(index, unable);
  }

  failed(index: number, error: LockError): void {
    if (!this.tally.has(index))
      (this.#failures ??= []).push({ node: this.#nodes[index]?.label ?? "", error });
    this.#count(index, "void");
  }

  /** Why votes are void. */
  get failures(): readonly NodeFailure[] {
    return this.#failures ?? [];
  }

  /** Nobody is waited for any more. */
  close(error: LockError): void {
    for (const { index } of this.#nodes) if (!this.tally.has(index)) this.failed(index, error);
  }

  #count(index: number, vote: Vote): void {
    if (this.tally.has(index)) return;
    this.tally.count(index, vote);
    if (this.#over || !this.#isDecided()) return;
    this.#over = true;
    this.#question.decided(this);
  }

  #isDecided(): boolean {
    const { verdict, surelyNot, refused, unable, open } = this.tally;
    if (verdict === "reached" || open === 0) return true;
    const { against } = this.#question;
    if (against === "all votes") return false;
    return against === "surely not" ? surelyNot : refused || unable;
  }
}
