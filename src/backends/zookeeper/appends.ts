/** Appends that are under way: one for each id at a time, those of one queue in order, and on a new session if one ends. Making the node is left to append.ts. */
import type { NewEntry, Snapshot } from "../../core/backend.ts";
import { type AppendContext, join, look } from "./append.ts";
import { hasZooCode } from "./client/index.ts";
import { Lanes } from "./lanes.ts";
import type { Own } from "./own.ts";
import type { Sessions } from "./sessions.ts";

/** How many sessions in a row may end while an entry is being made. */
const sessionTries = 3;

/** The appends of one client. */
export class Appends {
  readonly #context: AppendContext;
  readonly #sessions: Sessions;
  readonly #lanes = new Lanes();
  /** By queue and id: the last that was asked, which waits for those before it. */
  readonly #underWay = new Map<
    string,
    { readonly queue: string; readonly answer: Promise<Snapshot | null> }
  >();

  constructor(context: AppendContext, sessions: Sessions) {
    this.#context = context;
    this.#sessions = sessions;
  }

  /** As the seam's append; rejects with the errors of the client. */
  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    const key = `${queue}\n${entry.id}`;
    // An append with the same id that is under way is this one: it says which entry is meant.
    const same = this.#underWay.get(key);
    const ask = (): Promise<Snapshot | null> => this.#append(queue, entry);
    const answer = same === undefined ? ask() : same.answer.then(ask, ask);
    const appending = { queue, answer };
    const end = (): void => {
      if (this.#underWay.get(key) === appending) this.#underWay.delete(key);
    };
    this.#underWay.set(key, appending);
    answer.then(end, end);
    return answer;
  }

  /** Resolves when those that were asked before, to one queue or to all, are answered: one may be sent twice. */
  async answered(queue?: string): Promise<void> {
    const before = [...this.#underWay.values()].filter((one) => queue === undefined || one.queue === queue);
    await Promise.allSettled(before.map(({ answer }) => answer));
  }

  #append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    const own = this.#context.owns.find(queue, entry.id);
    return own === undefined ? this.#join(queue, entry) : this.#again(own, entry);
  }

  async #again(own: Own, entry: NewEntry): Promise<Snapshot | null> {
    return (await this.#found(own)) ?? this.#join(own.queue, entry);
  }

  /** Where an entry of ours stands; null if it has left, or its session is over and it with it. */
  async #found(own: Own): Promise<Snapshot | null> {
    if (own.state !== "live") {
      await own.deletion;
      return null;
    }
    try {
      const said = await look(this.#context, own);
      if (said === null) await this.#context.owns.guard(own);
      return said;
    } catch (error) {
      if (hasZooCode(error, "sessionExpired")) return null;
      throw error;
    }
  }

  async #join(queue: string, entry: NewEntry, tries = 1): Promise<Snapshot | null> {
    const session = this.#sessions.forTtl(entry.ttlMs);
    const turn = this.#lanes.enter(queue, session, !this.#context.owns.has(queue));
    try {
      if (turn.start !== null) await turn.start;
      return await join(this.#context, session, queue, entry, turn);
    } catch (error) {
      // A new session is a new identity: what hung on the old one is not ours any more.
      if (!hasZooCode(error, "sessionExpired") || tries >= sessionTries) throw error;
    } finally {
      turn.leave();
    }
    return this.#join(queue, entry, tries + 1);
  }
}
