/**
 * One attempt to take a lock on a majority of nodes.
 *
 *  1. All nodes are asked at once; each that is free takes our value, with our ttl. With tokens we propose one, and a node
 *     takes it along if it knows of none that is as large; else it says what it knows. (One node alone gives it.) What a node took of an earlier
 *     attempt of ours counts as taken. It is decided as soon as a majority agrees, or has answered and cannot any more, or
 *     too few are left that could.
 *  2. If no majority took the token that was proposed: t = more than the largest number that was heard, and each node that
 *     still has our value stores t unless it knows a larger number. Again a majority decides.
 *  3. Granted if what is left of the ttl, counted from before the first call, is not used up. Else all nodes are told to
 *     let go, those too that have not answered.
 */
import { afterReading, type Clock, type Timer } from "../../core/clock.ts";
import { marginMs } from "../../core/keeper.ts";
import { Ballot, type Question } from "./ballot.ts";
import { redlockError, tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import { type Holder, holderOf } from "./holder.ts";
import { type Leftover, letGo } from "./leftovers.ts";
import type { Node } from "./node.ts";
import type { Vote } from "./quorum.ts";
import { storeToken, takeFenced, takePlain } from "./short.ts";
import { leftMs, readLook, valueOf } from "./values.ts";

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
  | { readonly kind: "busy"; readonly holder: Holder | null; readonly highest: bigint };

/** How often a token that turned out to be too low is raised. */
const storeTries = 3;

/** How much of the ttl nodes may take to answer. */
const patience = 0.25;

/**
 * Tries once. Rejects with LOCK_UNAVAILABLE if too few nodes could vote, or too late. What it could not keep is told
 * before: it may be in the way of the next attempt of the same id.
 */
export function acquire(
  fleet: Fleet,
  clock: Clock,
  asked: Asked,
  left: (leftover: Leftover) => void,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    new Acquisition(fleet, clock, asked, { resolve, reject, left }).take();
  });
}

/** Who is told how an attempt ends. */
interface Told {
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
  readonly left: (leftover: Leftover) => void;
}

class Acquisition implements Question {
  readonly against = "refused";
  readonly #fleet: Fleet;
  readonly #clock: Clock;
  readonly #asked: Asked;
  readonly #told: Told;
  readonly #sentAt: number;
  #others: Holder[] | null = null;
  /** How many nodes have our value with the number that we asked for. */
  #stored = 0;
  /** The token that the only node has given. */
  #given: bigint | null = null;
  /** How many had our value already, of an earlier attempt, and the largest token that it had there; and a bit for each. */
  #found = 0;
  #foundBits = 0;
  #foundToken = 0n;
  /** A bit for each node that has said that somebody else has it: there is nothing to let go of. */
  #refusedBits = 0;
  /** For how long each of those lasts that agreed in time: the shortest life. */
  #lifeMs: number;
  #taken = false;
  #granted: bigint | null = null;
  /** Nodes that have our value under another number than the token that was to be stored: its kind and that number. */
  #astray: Map<Node, string> | null = null;
  #highest = 0n;
  #ballot: Ballot | null = null;
  #timer: Timer | null = null;

  constructor(fleet: Fleet, clock: Clock, asked: Asked, told: Told) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#asked = asked;
    this.#told = told;
    this.#lifeMs = asked.ttlMs;
    this.#sentAt = clock.recent();
  }

  // 1. Take it.

  take(): void {
    const { key, id, ttlMs, number, rest, fenced } = this.#asked;
    const ballot = new Ballot(this.#fleet.nodes, this);
    this.#ballot = ballot;
    // One node alone knows best: what it gives is never ahead of its clock, so not even a wiped one repeats it.
    const value = valueOf(id, fenced && this.#fleet.nodes.length === 1 ? "" : number, rest);
    const args = [value, String(ttlMs)] as const;
    if (fenced) this.#fleet.call("acquire", [key], args, ballot, takeFenced(key, ...args));
    else this.#fleet.call("take", [key], args, ballot, takePlain(key, id, ...args));
    if (ttlMs * patience < this.#fleet.deadlineMs) {
      const late = redlockError(
        "LOCK_OUTCOME_UNKNOWN",
        `it has not answered within a quarter of ${ttlMs} ms`,
      );
      this.#timer = afterReading(this.#clock, ttlMs * patience, () => this.#ballot?.close(late));
    }
  }

  read(answer: string, node: Node, counts: boolean): Vote {
    if (answer === "+") {
      if (counts) this.#stored += 1;
      return "yes";
    }
    const said = answer.slice(1);
    if (said.startsWith("t") && answer.startsWith("+")) {
      this.#given = BigInt(said.slice(1));
      if (counts) this.#stored += 1;
      return "yes";
    }
    if (answer.startsWith("+")) {
      this.#learn(said);
      return "yes";
    }
    if (answer.startsWith("=")) {
      this.#find(said, node, counts);
      return "yes";
    }
    const other = readLook(said);
    if (other !== null) (this.#others ??= []).push(other);
    this.#refusedBits |= 1 << node.index;
    return "no";
  }

  /** A node has our value of an earlier attempt. */
  #find(said: string, node: Node, counts: boolean): void {
    const [number = "0", pttl = "0"] = said.slice(1).split(" ");
    this.#learn(number);
    // What comes late has no part in what was decided, but may have to be put right.
    if (this.#granted !== null) return this.#putRight(node, said.charAt(0) + number);
    if (!counts || this.#taken) return;
    this.#lifeMs = Math.min(this.#lifeMs, leftMs(pttl));
    this.#found += 1;
    this.#foundBits |= 1 << node.index;
    if (said.startsWith("t") && BigInt(number) > this.#foundToken) this.#foundToken = BigInt(number);
  }

  #learn(number: string): void {
    if (BigInt(number) > this.#highest) this.#highest = BigInt(number);
  }

  decided(ballot: Ballot): void {
    this.#taken = true;
    const { verdict, quorum } = ballot.tally;
    if (verdict !== "reached") return this.#giveUp(ballot);
    const { number, fenced } = this.#asked;
    if (this.#stored >= quorum) this.#conclude(this.#given ?? number);
    else if (this.#found >= quorum && this.#foundToken > 0n) {
      // An entry that stands is found, not made anew: it keeps its number, once a majority has that.
      for (const node of this.#fleet.nodes)
        if (!has(this.#foundBits, node)) this.#takeOut(node, String(number));
      this.#store(this.#foundToken, storeTries);
    } else if (fenced) this.#store(this.#nextToken(), storeTries);
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
    this.#lifeMs = Number.POSITIVE_INFINITY;
    const ballot = new Ballot(this.#fleet.nodes, {
      against: "refused",
      read: (answer, node, counts) => {
        const said = answer.slice(1);
        if (answer.startsWith("+")) {
          if (counts) this.#lifeMs = Math.min(this.#lifeMs, leftMs(said));
          return "yes";
        }
        if (answer.startsWith("=")) {
          this.#learn(said.slice(1));
          if (this.#granted === null) (this.#astray ??= new Map()).set(node, said);
          else this.#putRight(node, said);
        }
        return "no";
      },
      decided: ({ tally }) => {
        if (tally.verdict === "reached") this.#conclude(token);
        else if (tries > 1 && this.#highest >= token) this.#store(this.#nextToken(), tries - 1);
        else this.#giveUp(ballot);
      },
    });
    this.#ballot = ballot;
    this.#fleet.call("store", [key], [id, String(token)], ballot, storeToken(key, id, token));
  }

  // 3. Believe it, if there is time left.

  #conclude(seq: bigint): void {
    this.#timer?.cancel();
    const lifeMs = this.#lifeMs;
    if (this.#clock.now() - this.#sentAt < lifeMs - marginMs(lifeMs)) {
      this.#granted = seq;
      for (const [node, said] of this.#astray ?? []) this.#putRight(node, said);
      return this.#told.resolve({ kind: "granted", seq, lifeMs });
    }
    this.#letGo();
    const text = `the nodes agreed later than the ttl of ${this.#asked.ttlMs} ms allows: give a longer ttl`;
    this.#told.reject(redlockError("LOCK_UNAVAILABLE", text));
  }

  #giveUp({ tally, failures }: Ballot): void {
    this.#timer?.cancel();
    this.#letGo();
    if (tally.unable)
      return this.#told.reject(tooFew("LOCK_UNAVAILABLE", failures, tally.nodes, tally.quorum));
    // Where nobody has agreed, all that refuse are those that could vote.
    const holder = holderOf(this.#others ?? [], tally.yes > 0 ? tally.quorum : tally.no);
    this.#told.resolve({ kind: "busy", holder, highest: this.#highest });
  }

  /**
   * What a node has under another token than was granted would be neither renewed nor released there. What it has only noted,
   * and no token yet, is, and stays: the holder needs it.
   */
  #putRight(node: Node, kindAndNumber: string): void {
    const number = kindAndNumber.slice(1);
    if (kindAndNumber.startsWith("t") && number !== String(this.#granted)) this.#takeOut(node, number);
  }

  #takeOut(node: Node, number: string): void {
    const { key, id } = this.#asked;
    this.#fleet.callOne(node, "remove", [key], [id, number, "0"], { answered: () => {}, failed: () => {} });
  }

  #letGo(): void {
    const { key, id } = this.#asked;
    const nodes = this.#fleet.nodes.filter((node) => !has(this.#refusedBits, node));
    this.#told.left(letGo(this.#fleet, nodes, key, id));
  }
}

function has(bits: number, { index }: Node): boolean {
  return (bits & (1 << index)) !== 0;
}
