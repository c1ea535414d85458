/**
 * The way between one simulated client and the store: a layer that delays, drops, duplicates and reorders calls,
 * answers and hints by the weather of the moment. What the store does is left to the real memory backend.
 */
import type {
  Answer,
  Backend,
  Browsable,
  Entry,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import { LockError, type LockErrorCode } from "../../core/errors.ts";
import type { MemoryBackend } from "../../backends/memory/backend.ts";
import type { Dice } from "./dice.ts";
import type { Host } from "./host.ts";
import type { Ledger } from "./ledger.ts";
import type { Plan } from "./plan.ts";
import type { World } from "./world.ts";

/** How bad the network is; all chances are per message. */
export interface Weather {
  /** The usual delay of a message is up to this. */
  readonly delayMs: number;
  /** The chance of a delay up to slowMs. */
  readonly slow: number;
  readonly slowMs: number;
  readonly dropRequest: number;
  readonly dropReply: number;
  /** The chance that a request is executed again, up to slowMs later. */
  readonly duplicate: number;
  /** The chance that a call is refused with LOCK_UNAVAILABLE: surely not executed. */
  readonly refuse: number;
  /** The chance that the driver never gives up on an answer that does not come: the core's own deadlines have to do. */
  readonly hang: number;
  readonly dropHint: number;
  /** After how long the driver gives up on an answer. */
  readonly deadlineMs: number;
}

/** A store behind a network, as one client sees it. */
export class Network implements Backend, Browsable {
  readonly name = "memory";
  readonly traits: Traits;
  weather: Weather;
  /** Watches that the client was given and has not ended. */
  watches = 0;
  /** Called when the answer to a renewal has come in and was dealt with. */
  onRenewed: () => void = () => {};
  readonly #inner: MemoryBackend;
  readonly #world: World;
  readonly #host: Host;
  readonly #dice: Dice;
  readonly #ledger: Ledger;

  readonly handOver?: (queue: string, id: string, seq: bigint) => Promise<boolean>;

  constructor(inner: MemoryBackend, world: World, host: Host, dice: Dice, ledger: Ledger, plan: Plan) {
    this.#inner = inner;
    this.#world = world;
    this.#host = host;
    this.#dice = dice;
    this.#ledger = ledger;
    this.weather = plan.weather;
    if (plan.handOvers) this.handOver = (queue, id, seq) => this.remove(queue, id, false, seq);
    this.traits = { ...inner.traits, scope: "network", callOrder: false };
  }

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    return this.#call(() => {
      const answer = frozen(this.#inner.append(queue, entry));
      this.#ledger.appended(queue, entry, answer);
      return answer;
    });
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    const answered = this.#call(async () => {
      const answers = await this.#inner.renew(renewals);
      renewals.forEach(({ id }, index) => this.#ledger.renewed(id, answers[index]));
      return answers.map((answer): Renewed =>
        this.#dice.chance(this.weather.dropReply) ? { outcome: "unknown" } : answer,
      );
    });
    const dealtWith = (): void => this.#world.afterTurn(() => this.onRenewed());
    answered.then(dealtWith, dealtWith);
    return answered;
  }

  remove(queue: string, id: string, evict = false, seq?: bigint): Promise<boolean> {
    if (!evict) this.#ledger.left(id);
    return this.#call(() => {
      const wasThere = this.#inner.remove(queue, id, evict, seq);
      this.#ledger.removed(id, evict, wasThere);
      return wasThere;
    });
  }

  list(queue: string): Promise<readonly Entry[]> {
    return this.#call(() => this.#inner.list(queue), { hang: 0 });
  }

  queues(prefix: string): Promise<readonly string[]> {
    return this.#call(() => this.#inner.queues(prefix), { hang: 0 });
  }

  async watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    const end = await this.#call(() =>
      this.#inner.watch(queue, self, target, (fresh) => {
        const kept = fresh === undefined ? null : frozen(fresh);
        this.#hint(() => (kept === null ? onChange() : onChange(kept)));
      }),
    );
    this.watches += 1;
    return () => {
      this.watches -= 1;
      this.#world.after(this.#delayUs(), end);
    };
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#inner.onEvicted((queue, id) => this.#hint(() => listener(queue, id)));
  }

  /** A trip to something else than the store, by the same network, but never executed twice. Undefined if no answer came. */
  async trip<T>(execute: () => T): Promise<T | undefined> {
    try {
      return await this.#call(execute, { hang: 0, duplicate: 0 });
    } catch {
      return undefined;
    }
  }

  /** What is still on its way to the store goes on: a closed client cannot call it back. */
  async close(): Promise<void> {}

  /** Draws the fate of one call, then lets it happen. */
  #call<T>(execute: () => Answer<T>, better: Partial<Weather> = {}): Promise<T> {
    const { weather } = this;
    const { hang = weather.hang, duplicate = weather.duplicate } = better;
    const dice = this.#dice;
    const requestUs = this.#delayUs();
    const replyUs = this.#delayUs();
    return new Promise((resolve, reject) => {
      if (dice.chance(weather.refuse)) {
        this.#host.receive(requestUs, () => reject(failure("LOCK_UNAVAILABLE")));
        return;
      }
      const requestLost = dice.chance(weather.dropRequest);
      const replyLost = requestLost || dice.chance(weather.dropReply);
      const late = replyLost || requestUs + replyUs > weather.deadlineMs * 1000;
      if (late && !dice.chance(hang)) {
        const timer = this.#host.after(weather.deadlineMs, () => reject(failure("LOCK_OUTCOME_UNKNOWN")));
        if (!replyLost) this.#host.receive(requestUs + replyUs, () => timer.cancel());
      }
      const reply = (value: T): void => {
        if (!replyLost) this.#host.receive(replyUs, () => resolve(value));
      };
      if (!requestLost) this.#world.after(requestUs, () => arrive(execute, reply));
      if (dice.chance(duplicate)) {
        this.#world.after(requestUs + dice.between(0, weather.slowMs * 1000), () =>
          arrive(execute, () => {}),
        );
      }
    });
  }

  /** A hint may come late, twice or never. */
  #hint(tell: () => void): void {
    const { dropHint, duplicate } = this.weather;
    if (this.#dice.chance(dropHint)) return;
    this.#host.receive(this.#delayUs(), tell);
    if (this.#dice.chance(duplicate)) this.#host.receive(this.#delayUs(), tell);
  }

  #delayUs(): number {
    const { delayMs, slow, slowMs } = this.weather;
    return Math.ceil(this.#dice.between(0, (this.#dice.chance(slow) ? slowMs : delayMs) * 1000));
  }
}

function arrive<T>(execute: () => Answer<T>, answer: (value: T) => void): void {
  const value = execute();
  if (value instanceof Promise) void value.then(answer);
  else answer(value);
}

/** What was answered, as it was then: the memory backend's entries go on living. */
function frozen(snapshot: Snapshot): Snapshot;
function frozen(snapshot: Snapshot | null): Snapshot | null;
function frozen(snapshot: Snapshot | null): Snapshot | null {
  if (snapshot === null) return null;
  const { count, weight, nearest, nearestWriter } = snapshot.ahead;
  return {
    self: copy(snapshot.self),
    ahead: {
      count,
      weight,
      nearest: nearest === null ? null : copy(nearest),
      nearestWriter: nearestWriter === null ? null : copy(nearestWriter),
    },
  };
}

function copy(entry: Entry): Entry {
  const { id, owner, mode, weight, permits, seq, expiresInMs, ageMs } = entry;
  return { id, owner, mode, weight, permits, seq, expiresInMs, ageMs };
}

function failure(code: LockErrorCode): LockError {
  return new LockError(code, `the simulated network says ${code}`, { backend: "memory" });
}
