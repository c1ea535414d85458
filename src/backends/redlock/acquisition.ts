/**
 * One attempt to take a lock on a majority of nodes.
 *
 *  1. All nodes are asked at once; each that is free takes our value, with our ttl. With tokens we propose one, and a node
 *     takes it along if it knows of none that is as large; else it says what it knows. What a node took of an earlier
 *     attempt of ours counts as taken. It is decided as soon as a majority agrees, or cannot any more.
 *  2. If no majority took the token that was proposed: t = more than the largest number that was heard, and each node that
 *     still has our value stores t unless it knows a larger number. Again a majority decides.
 *  3. Granted if what is left of the ttl, counted from before the first call, is not used up. Else all nodes are told to
 *     let go, those too that have not answered.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import { marginMs } from "../../core/keeper.ts";
import { Ballot } from "./ballot.ts";
import { redlockError, tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import { type Holder, holderOf } from "./holder.ts";
import type { Node } from "./node.ts";
import { lifeOf, type Vote } from "./quorum.ts";
import { storeToken, takeFenced, takePlain } from "./short.ts";
import { leftMs, readLook } from "./values.ts";

/** What is asked for. */
export interface Asked {
  readonly key: string;
  readonly id: string;
  readonly ttlMs: number;
  /** Its number: with fencing, the token that is proposed. */
  readonly number: bigint;
  readonly fenced: boolean;
  readonly rest: string;
}

/** How an attempt ended. Busy: others have it on so many nodes that there is no majority for us. */
export type Outcome =
  | { readonly kind: "granted"; readonly seq: bigint; readonly lifeMs: number }
  /** Without a holder, nobody seems to have it: several tried at once, or it is just being released. */
  | {
      readonly kind: "busy";
      readonly holder: Holder | null;
      readonly highest: bigint;
      /** Resolves when nothing of this attempt is in the way of the next. */
      readonly over: Promise<void>;
    };

/** How often a token that turned out to be too low is raised. */
const storeTries = 3;

/** How much of the ttl nodes may take to answer. */
const patience = 0.25;

/** Tries once. Rejects with LOCK_UNAVAILABLE if too few nodes could vote, or too late. */
export function acquire(fleet: Fleet, clock: Clock, asked: Asked): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    new Acquisition(fleet, clock, asked, resolve, reject).take();
  });
}

/**
 * Tells nodes to let go of what they may have of an attempt. Nobody held it: nobody is told. Resolves when each that is
 * there has done it, or is not waited for any more: the next attempt of the same id must not be hit by it.
 */
function letGo(fleet: Fleet, nodes: readonly Node[], key: string, id: string): Promise<void> {
  return new Promise((resolve) => {
    const owed = { key, id, seq: "" };
    let left = 0;
    const done = (): void => {
      left -= 1;
      if (left === 0) resolve();
    };
    for (const node of nodes) if (node.isUp) left += 1;
    if (left === 0) resolve();
    for (const node of nodes) {
      // One that is just connecting may still have the attempt before it: it hears this after that.
      const over = node.isUp ? done : (): void => {};
      fleet.callOne(node, "remove", [key], [id, "", "0"], { owed, answered: over, failed: over });
    }
  });
}

class Acquisition {
  readonly #fleet: Fleet;
  readonly #clock: Clock;
  readonly #asked: Asked;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #reject: (error: unknown) => void;
  readonly #sentAt: number;
  readonly #others: Holder[] = [];
  /** How many nodes have our value with the number that we asked for. */
  #stored = 0;
  /** The nodes that had our value already, of an earlier attempt, and the largest token that it had there. */
  readonly #found = new Set<Node>();
  #foundToken = 0n;
  #granted = false;
  #lives: number[] = [];
  #highest = 0n;
  #ballot: Ballot | null = null;
  #timer: Timer | null = null;
  /** The nodes that have said that somebody else has it: there is nothing to let go of. */
  readonly #refused = new Set<Node>();

  constructor(
    fleet: Fleet,
    clock: Clock,
    asked: Asked,
    resolve: (outcome: Outcome) => void,
    reject: (error: unknown) => void,
  ) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#asked = asked;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#sentAt = clock.recent();
  }

  // 1. Take it.

  take(): void {
    const { key, id, ttlMs, number, rest, fenced } = this.#asked;
    const ballot = new Ballot(this.#fleet.nodes, {
      against: "impossible",
      read: (answer, node, counts) => this.#readTaken(answer, node, counts),
      decided: (decided) => this.#taken(decided),
    });
    this.#ballot = ballot;
    const short = (fenced ? takeFenced : takePlain)(key, id, ttlMs, number, rest);
    const args = [id, String(ttlMs), String(number), rest, fenced ? "1" : "0"];
    this.#fleet.call("acquire", [key], args, ballot, short);
    if (ttlMs * patience < this.#fleet.deadlineMs) {
      const late = redlockError(
        "LOCK_OUTCOME_UNKNOWN",
        `it has not answered within a quarter of ${ttlMs} ms`,
      );
      this.#timer = this.#clock.after(ttlMs * patience, () => this.#ballot?.close(late));
    }
  }

  #readTaken(answer: string, node: Node, counts: boolean): Vote {
    const said = answer.slice(1);
    if (answer.startsWith("+")) {
      this.#learn(said);
      if (counts && said === "") this.#stored += 1;
      if (counts) this.#lives.push(this.#asked.ttlMs);
      return "yes";
    }
    if (answer.startsWith("=")) {
      const [number = "0", pttl = "0"] = said.slice(1).split(" ");
      this.#learn(number);
      if (counts) this.#lives.push(leftMs(pttl));
      this.#found.add(node);
      if (said.startsWith("t") && BigInt(number) > this.#foundToken) this.#foundToken = BigInt(number);
      if (this.#granted) this.#takeOut([node], number);
      return "yes";
    }
    const other = readLook(said);
    if (other !== null) this.#others.push(other);
    this.#refused.add(node);
    return "no";
  }

  #learn(number: string): void {
    if (number !== "" && BigInt(number) > this.#highest) this.#highest = BigInt(number);
  }

  #taken(ballot: Ballot): void {
    const { verdict, quorum } = ballot.tally;
    if (verdict !== "reached") return this.#giveUp(ballot);
    const { number, fenced } = this.#asked;
    if (this.#found.size >= quorum && this.#foundToken > 0n) {
      // An entry that stands is found, not made anew: it keeps its number, once a majority has that.
      this.#takeOut(
        this.#fleet.nodes.filter((node) => !this.#found.has(node)),
        String(number),
      );
      this.#store(this.#foundToken, storeTries);
    } else if (this.#stored >= quorum) this.#conclude(number, quorum);
    else if (fenced) this.#store(this.#nextToken(), storeTries);
    else this.#store(number, 1);
  }

  // 2. Give it a token.

  /** Above all that was heard, and by so much that a node does not know more only because it was asked a little later. */
  #nextToken(): bigint {
    const { number } = this.#asked;
    if (this.#stored > 0 && number > this.#highest) this.#highest = number;
    return this.#highest + 1n + BigInt(Math.ceil((this.#clock.now() - this.#sentAt) * 1000));
  }

  #store(token: bigint, tries: number): void {
    const { key, id } = this.#asked;
    this.#lives = [];
    const ballot = new Ballot(this.#fleet.nodes, {
      against: "impossible",
      read: (answer, _node, counts) => {
        if (!answer.startsWith("+")) {
          this.#learn(answer.slice(1));
          return "no";
        }
        if (counts) this.#lives.push(leftMs(answer.slice(1)));
        return "yes";
      },
      decided: ({ tally }) => {
        if (tally.verdict === "reached") this.#conclude(token, tally.quorum);
        else if (tries > 1 && this.#highest >= token) this.#store(this.#nextToken(), tries - 1);
        else this.#giveUp(ballot);
      },
    });
    this.#ballot = ballot;
    this.#fleet.call("store", [key], [id, String(token)], ballot, storeToken(key, id, token));
  }

  // 3. Believe it, if there is time left.

  #conclude(seq: bigint, quorum: number): void {
    this.#timer?.cancel();
    const lifeMs = lifeOf(this.#lives, quorum);
    if (this.#clock.now() - this.#sentAt < lifeMs - marginMs(lifeMs)) {
      this.#granted = true;
      return this.#resolve({ kind: "granted", seq, lifeMs });
    }
    void this.#letGo();
    const text = `the nodes agreed later than the ttl of ${this.#asked.ttlMs} ms allows: give a longer ttl`;
    this.#reject(redlockError("LOCK_UNAVAILABLE", text));
  }

  #giveUp({ tally, failures }: Ballot): void {
    this.#timer?.cancel();
    const over = this.#letGo();
    if (tally.unable) return this.#reject(tooFew("LOCK_UNAVAILABLE", failures, tally.nodes, tally.quorum));
    const holder = holderOf(this.#others, tally.yes > 0 ? tally.quorum : tally.nodes - tally.quorum + 1);
    this.#resolve({ kind: "busy", holder, highest: this.#highest, over });
  }

  /** What some nodes have under another number than was granted would be neither renewed nor released there. */
  #takeOut(nodes: readonly Node[], number: string): void {
    const { key, id } = this.#asked;
    for (const node of nodes) {
      this.#fleet.callOne(node, "remove", [key], [id, number, "0"], { answered: () => {}, failed: () => {} });
    }
  }

  #letGo(): Promise<void> {
    const { key, id } = this.#asked;
    const nodes = this.#fleet.nodes.filter((node) => !this.#refused.has(node));
    return letGo(this.#fleet, nodes, key, id);
  }
}
