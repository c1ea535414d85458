/**
 * The users of one client: they draw story after story, and before the faults begin they tell those in which every answer
 * is known. What a story is about is left to stories/.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { slewMs, systemClock } from "../../core/clock.ts";
import { LockManager } from "../../core/manager.ts";
import { calm, draw, duets, mixed } from "./stories/index.ts";
import { Party } from "./stories/party.ts";
import { calmMark, calmTtls, calmWaitTtls, type Duet, type Stage, type Workload } from "./stories/story.ts";

/** How often a user looks at what it holds. */
const lookMs = 20;

/** The users of one client, until they are told to stop. */
export class Users {
  readonly #load: Workload;
  readonly #me: Party;
  #stopped = false;
  #lookedAt = process.hrtime.bigint();
  /** The same moment by the clock that locks are believed by. */
  #believedAt: number = systemClock.now();
  #stories = 0;
  #settle = (): void => {};
  /** Resolves when the stories of the calm opening have been told. */
  readonly settled: Promise<void> = new Promise((resolve) => {
    this.#settle = resolve;
  });

  constructor(load: Workload) {
    this.#load = load;
    this.#me = new Party(load.locks, load.observer);
  }

  /** Asks for nothing new; resolves in `run` when all have ended. */
  stop(): void {
    this.#stopped = true;
  }

  async run(): Promise<void> {
    const looking = setInterval(() => this.#look(), lookMs);
    const lanes = Array.from({ length: this.#load.lanes }, () => this.#use());
    await Promise.all([...lanes, this.#useTogether().then(this.#settle)]);
    clearInterval(looking);
  }

  #look(): void {
    const { observer, ttlMs } = this.#load;
    const believed = systemClock.now();
    const now = process.hrtime.bigint();
    const passedMs = Number(now - this.#lookedAt) / 1e6;
    // Where the wall clock was set forward, locks are believed no longer than if the machine had been suspended.
    const wasSet = believed - this.#believedAt - passedMs > slewMs;
    if (wasSet || passedMs > lookMs + 0.75 * ttlMs) observer.stalled(this.#lookedAt, now);
    this.#lookedAt = now;
    this.#believedAt = believed;
    observer.look();
  }

  async #use(): Promise<void> {
    const load = this.#load;
    const { dice, ttlMs, locks } = load;
    while (!this.#stopped) {
      await sleep(dice.between(0, ttlMs * 0.05));
      const story = draw(this.#calmForMs > 0 ? calm : mixed, locks.traits, dice);
      await story?.tell(load, this.#me);
    }
  }

  get #calmForMs(): number {
    return Number(this.#load.calmUntil - process.hrtime.bigint()) / 1e6;
  }

  /** Tells the stories for two as long as nothing is broken, with a client that comes for them; the long ones first. */
  async #useTogether(): Promise<void> {
    const load = this.#load;
    const possible = duets
      .filter(({ needs }) => needs?.(load) ?? true)
      .toSorted((a, b) => b.lastsMs(load) - a.lastsMs(load));
    // Each client begins elsewhere, so that together they tell all of them even if there is little time.
    possible.push(...possible.splice(0, (5 * load.place) % (possible.length + 1)));
    possible.sort((a, b) => Number(a.late ?? false) - Number(b.late ?? false));
    if (!possible.some((duet) => this.#hasTimeFor(duet))) return;
    const other = await this.#join("friend");
    let told: Duet[] = [];
    const tell = async (): Promise<void> => {
      for (;;) {
        const timely = possible.filter((duet) => this.#hasTimeFor(duet));
        if (timely.length === 0) return;
        if (timely.every((duet) => told.includes(duet))) told = [];
        const duet = timely.find((each) => !told.includes(each));
        if (duet === undefined) return;
        told.push(duet);
        await duet.tell(this.#stage(other)).catch((error: unknown) => load.observer.explain(error));
      }
    };
    await Promise.all(Array.from({ length: load.duetLanes }, tell));
    await other.locks.close();
  }

  #hasTimeFor({ lastsMs }: Duet): boolean {
    return !this.#stopped && this.#calmForMs > lastsMs(this.#load);
  }

  async #join(word: string): Promise<Party> {
    const { open, ttlMs, observer } = this.#load;
    const sibling = observer.sibling(word);
    return new Party(new LockManager(await open(), { ttl: ttlMs, label: sibling.proc }), sibling);
  }

  #stage(other: Party): Stage {
    const load = this.#load;
    const { prefix, observer, ttlMs } = load;
    const { stalls } = observer;
    this.#stories += 1;
    const own = `${prefix}${calmMark}${observer.proc}.${this.#stories}/`;
    return {
      load,
      me: this.#me,
      other,
      name: (word) => `${own}${word}`,
      boundMs: calmWaitTtls * ttlMs,
      longTtlMs: calmTtls * ttlMs,
      object: (invariant, message) => {
        // A process that has just gone on may not have noticed yet that it stood still. Once faults may come, nothing is known any more.
        this.#look();
        if (observer.stalls === stalls && this.#calmForMs > 0) observer.violate(invariant, message);
      },
      join: (word) => this.#join(`${word}${this.#stories}`),
    };
  }
}
