/** Extends an entry on a majority of nodes, and repairs those that have missed it while the majority stands. */
import type { Renewed } from "../../core/backend.ts";
import { Ballot } from "./ballot.ts";
import { tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import type { Node } from "./node.ts";
import { leftMs } from "./values.ts";

/** What is to be extended. */
export interface Extension {
  readonly key: string;
  readonly evictedKey: string;
  readonly id: string;
  readonly seq: bigint;
  readonly ttlMs: number;
}

/** Extends an entry. `restOf` gives what a repaired node has to know of it; null if it has been released meanwhile. */
export function extend(
  fleet: Fleet,
  asked: Extension,
  restOf: () => string | null,
  fenced: boolean,
): Promise<Renewed> {
  const { key, evictedKey, id, seq, ttlMs } = asked;
  return new Promise((resolve) => {
    let lifeMs = Number.POSITIVE_INFINITY;
    const without: Node[] = [];
    let evicted = false;
    let stands = false;
    const repair = (node: Node): void => {
      const rest = restOf();
      if (rest === null) return;
      const args = [id, String(seq), String(ttlMs), rest, fenced ? "1" : "0"];
      fleet.callOne(node, "repair", [key], args, { answered: () => {}, failed: () => {} });
    };
    const ballot = new Ballot(fleet.nodes, {
      against: "surely not",
      read: (answer, node, counts) => {
        if (answer.startsWith("+")) {
          if (counts) lifeMs = Math.min(lifeMs, leftMs(answer.slice(1)));
          return "yes";
        }
        if (answer === "x") evicted = true;
        if (answer === "0" && stands) repair(node);
        else if (answer === "0") without.push(node);
        return "no";
      },
      decided: ({ tally, failures }) => {
        const { verdict, surelyNot, quorum, nodes } = tally;
        if (verdict === "reached") {
          stands = true;
          for (const node of without) repair(node);
          resolve({ outcome: "renewed", expiresInMs: lifeMs });
        } else if (surelyNot) {
          resolve(evicted ? { outcome: "gone", evicted } : { outcome: "gone" });
        } else {
          resolve({ outcome: "unknown", cause: tooFew("LOCK_OUTCOME_UNKNOWN", failures, nodes, quorum) });
        }
      },
    });
    fleet.call("renew", [key, evictedKey], [id, String(seq), String(ttlMs)], ballot);
  });
}
