/**
 * One attempt to take a lock on a majority of nodes.
 *
 *  1. All nodes are asked at once; each that is free takes our value, with our ttl. What a node took of an earlier attempt
 *     of ours counts as taken. It is decided as soon as a majority agrees, or cannot any more.
 *  2. With tokens: t = more than the largest number that was heard, and each node that still has our value stores t
 *     unless it knows a larger number. Again a majority decides.
 *  3. Granted if what is left of the ttl, counted from before the first call, is not used up. Else all nodes are told to
 *     let go, those too that have not answered.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import { marginMs } from "../../core/keeper.ts";
import { Ballot } from "./ballot.ts";
import { redlockError, tooFew } from "./failures.ts";
import type { Fleet } from "./fleet.ts";
import type { Node } from "./node.ts";
import { lifeOf, type Vote } from "./quorum.ts";
import { storeToken, takeFenced, takePlain } from "./short.ts";
import { type Held, leftMs, readLook } from "./values.ts";

/** What is asked for. */
export interface Asked {
  readonly key: string;
  readonly id: string;
  readonly ttlMs: number;
  /** The number of an entry without a token; null if it gets one. */
  readonly number: bigint | null;
  readonly rest: string;
}

/** Who has a lock, and for how long. */
export interface Holder {
  readonly held: Held;
  readonly leftMs: number;
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
    const there = nodes.filter((node) => node.isUp);
    let left = there.length;
    const done = (): void => {
      left -= 1;
      if (left === 0) resolve();
    };
    for (const node of nodes) if (!node.isUp) node.owe(owed);
    if (left === 0) return resolve();
    for (const node of there) {
      fleet.callOne(node, "remove", [key], [id, "", "0"], { owed, answered: done, failed: done });
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
  /** How many nodes had our value already, and the largest token that it had there. */
  #found = 0;
  #foundToken = 0n;
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
    const { key, id, ttlMs, number, rest } = this.#asked;
    const ballot = new Ballot(this.#fleet.nodes, {
      against: "impossible",
      read: (answer, node) => this.#readTaken(answer, node),
      decided: (decided) => this.#taken(decided),
    });
    this.#ballot = ballot;
    const short =
      number === null ? takeFenced(key, id, ttlMs, rest) : takePlain(key, id, ttlMs, number, rest);
    const args = [id, String(ttlMs), number === null ? "" : String(number), rest];
    this.#fleet.call("acquire", [key], args, ballot, short);
    if (ttlMs * patience < this.#fleet.deadlineMs) {
      const late = redlockError(
        "LOCK_OUTCOME_UNKNOWN",
        `it has not answered within a quarter of ${ttlMs} ms`,
      );
      this.#timer = this.#clock.after(ttlMs * patience, () => this.#ballot?.close(late));
    }
  }

  #readTaken(answer: string, node: Node): Vote {
    const said = answer.slice(1);
    if (answer.startsWith("+")) {
      this.#learn(said);
      this.#lives.push(this.#asked.ttlMs);
      return "yes";
    }
    if (answer.startsWith("=")) {
      const [number = "0", pttl = "0"] = said.slice(1).split(" ");
      this.#learn(number);
      this.#lives.push(leftMs(pttl));
      this.#found += 1;
      if (said.startsWith("t") && BigInt(number) > this.#foundToken) this.#foundToken = BigInt(number);
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
    const { number } = this.#asked;
    // An entry that stands is found, not made anew: it keeps its number, once a majority has that.
    if (this.#found >= quorum && this.#foundToken > 0n) this.#store(this.#foundToken, storeTries);
    else if (number === null) this.#store(this.#nextToken(), storeTries);
    // Lives of an earlier attempt have numbers of their own: all get the same.
    else if (this.#found > 0) this.#store(number, 1);
    else this.#conclude(number, quorum);
  }

  // 2. Give it a token.

  /** Above all that was heard, and by so much that a node does not know more only because it was asked a little later. */
  #nextToken(): bigint {
    return this.#highest + 1n + BigInt(Math.ceil((this.#clock.now() - this.#sentAt) * 1000));
  }

  #store(token: bigint, tries: number): void {
    const { key, id } = this.#asked;
    this.#lives = [];
    const ballot = new Ballot(this.#fleet.nodes, {
      against: "impossible",
      read: (answer) => {
        if (answer.startsWith("+")) this.#lives.push(leftMs(answer.slice(1)));
        else this.#learn(answer.slice(1));
        return answer.startsWith("+") ? "yes" : "no";
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

  #letGo(): Promise<void> {
    const { key, id } = this.#asked;
    const nodes = this.#fleet.nodes.filter((node) => !this.#refused.has(node));
    return letGo(this.#fleet, nodes, key, id);
  }
}

/** Who has it on at least so many nodes, and for how long on so many. */
export function holderOf(seen: readonly Holder[], least: number): Holder | null {
  for (const { held } of seen) {
    const same = seen.filter((other) => other.held.id === held.id);
    if (same.length < least) continue;
    const seq = same.reduce((highest, one) => (one.held.seq > highest ? one.held.seq : highest), 0n);
    const lives = same.map((one) => one.leftMs);
    return { held: { ...held, seq }, leftMs: lifeOf(lives, least) };
  }
  return null;
}
