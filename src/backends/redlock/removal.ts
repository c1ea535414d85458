/** Takes an entry out on all nodes; it was there if a majority had it. */
import { Ballot, type Question } from "./ballot.ts";
import { tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import type { Vote } from "./quorum.ts";
import { releaseValue } from "./short.ts";

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
    const ballot = new Ballot(fleet.nodes, {
      ...question(fleet.nodes.length, resolve, reject),
      owed: { key, id, seq },
    });
    const short = rest === undefined || seq === "" ? undefined : releaseValue(key, id, seq, rest);
    fleet.call("remove", [key], [id, seq, "1"], ballot, short);
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
    const ballot = new Ballot(fleet.nodes, question(fleet.nodes.length, resolve, reject));
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

function question(
  nodes: number,
  resolve: (removed: boolean) => void,
  reject: (error: unknown) => void,
): Question {
  let firstHadIt = false;
  return {
    // Half of an even number is enough where nobody else can have a majority; of two halves, the one with the first node.
    against: nodes % 2 === 0 ? "all votes" : "surely not",
    read: (answer, { index }): Vote => {
      if (answer === "1" && index === 0) firstHadIt = true;
      return answer === "1" ? "yes" : "no";
    },
    decided: ({ tally, failures }) => {
      const { verdict, surelyNot, yes, no, quorum } = tally;
      if (verdict === "reached" || (firstHadIt && 2 * yes === nodes && no === yes)) resolve(true);
      else if (surelyNot) resolve(false);
      else reject(tooFew("LOCK_OUTCOME_UNKNOWN", failures, nodes, quorum));
    },
  };
}
