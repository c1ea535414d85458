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
import { lifeOf, type Vote } from "./quorum.ts";
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
  | { readonly kind: "busy"; readonly holder: Holder | null; readonly highest: bigint };

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

/** Tells all nodes to let go of what they have of an attempt, without waiting for an answer. Nobody held it: nobody is told. */
function letGo(fleet: Fleet, key: string, id: string): void {
  const owed = { key, id, seq: "" };
  fleet.call("remove", [key], [id, "", "0"], { owed, answered: () => {}, failed: () => {} });
}

class Acquisition {
  readonly #fleet: Fleet;
  readonly #clock: Clock;
  readonly #asked: Asked;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #reject: (error: unknown) => void;
  readonly #sentAt: number;
  readonly #others: Holder[] = [];
  /** How many nodes had an entry of ours with this number: an entry that stands is found, not made anew. */
  readonly #found = new Map<bigint, number>();
  #lives: number[] = [];
  #highest = 0n;
  #ballot: Ballot | null = null;
  #timer: Timer | null = null;
  #failed = false;
  #released = false;

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
      read: (answer) => this.#readTaken(answer),
      decided: (decided) => this.#taken(decided),
      // Whoever takes it, or may have, after we have given up is told to let go.
      straggler: (vote) => this.#failed && vote !== "no" && this.#letGo(),
    });
    this.#ballot = ballot;
    this.#fleet.call(
      "acquire",
      [key],
      [id, String(ttlMs), number === null ? "" : String(number), rest],
      ballot,
    );
    if (ttlMs * patience < this.#fleet.deadlineMs) {
      const late = redlockError(
        "LOCK_OUTCOME_UNKNOWN",
        `it has not answered within a quarter of ${ttlMs} ms`,
      );
      this.#timer = this.#clock.after(ttlMs * patience, () => this.#ballot?.close(late));
    }
  }

  #readTaken(answer: string): Vote {
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
      const seq = BigInt(number);
      if (said.startsWith("t")) this.#found.set(seq, (this.#found.get(seq) ?? 0) + 1);
      return "yes";
    }
    const other = readLook(said);
    if (other !== null) this.#others.push(other);
    return "no";
  }

  #learn(number: string): void {
    if (number !== "" && BigInt(number) > this.#highest) this.#highest = BigInt(number);
  }

  #taken(ballot: Ballot): void {
    const { verdict, quorum } = ballot.tally;
    if (verdict !== "reached") return this.#giveUp(ballot);
    const standing = [...this.#found].find(([, count]) => count >= quorum);
    const { number } = this.#asked;
    if (standing !== undefined) this.#conclude(standing[0], quorum);
    else if (number === null) this.#store(this.#nextToken(), storeTries);
    // Lives of an earlier attempt have numbers of their own: all get the same.
    else if (this.#found.size > 0) this.#store(number, 1);
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
    this.#fleet.call("store", [key], [id, String(token)], ballot);
  }

  // 3. Believe it, if there is time left.

  #conclude(seq: bigint, quorum: number): void {
    this.#timer?.cancel();
    const lifeMs = lifeOf(this.#lives, quorum);
    if (this.#clock.now() - this.#sentAt < lifeMs - marginMs(lifeMs)) {
      return this.#resolve({ kind: "granted", seq, lifeMs });
    }
    this.#letGo();
    const text = `the nodes agreed later than the ttl of ${this.#asked.ttlMs} ms allows: give a longer ttl`;
    this.#reject(redlockError("LOCK_UNAVAILABLE", text));
  }

  #giveUp({ tally, failures }: Ballot): void {
    this.#timer?.cancel();
    this.#failed = true;
    if (tally.yes > 0 || tally.void > 0 || this.#lives.length > 0) this.#letGo();
    if (tally.unable) return this.#reject(tooFew("LOCK_UNAVAILABLE", failures, tally.nodes, tally.quorum));
    const holder = holderOf(this.#others, tally.yes > 0 ? tally.quorum : tally.nodes - tally.quorum + 1);
    this.#resolve({ kind: "busy", holder, highest: this.#highest });
  }

  /** Tells all nodes to let go, once. */
  #letGo(): void {
    if (this.#released) return;
    this.#released = true;
    letGo(this.#fleet, this.#asked.key, this.#asked.id);
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
