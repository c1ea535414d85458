/**
 * One simulated client: its machine, its network, the real LockManager, and the record of what its users ask, get and
 * believe. What they do is left to workload.ts.
 */
import { MemoryBackend } from "../../backends/memory/backend.ts";
import type { MemoryStore } from "../../backends/memory/store.ts";
import { LockError } from "../../core/errors.ts";
import type { Lock } from "../../core/lock.ts";
import { LockManager } from "../../core/manager.ts";
import type { History, HistoryEvent, NewEvent } from "../history.ts";
import { Dice } from "./dice.ts";
import { Host } from "./host.ts";
import type { Ledger } from "./ledger.ts";
import { Network } from "./network.ts";
import type { Plan } from "./plan.ts";
import type { Resource } from "./resource.ts";
import type { World } from "./world.ts";

/** What all clients of one simulation share. */
export interface Scene {
  readonly plan: Plan;
  readonly world: World;
  readonly store: MemoryStore;
  readonly history: History;
  readonly ledger: Ledger;
  readonly resource: Resource;
  /** Tokens are recorded from this on, since a store goes on where the last one of the process stopped. */
  readonly firstSeq: bigint;
}

/** A lock that a user has, and until when it may believe so. */
export interface Handle {
  readonly attempt: string;
  readonly name: string;
  readonly lock: Lock;
  readonly token: bigint;
  readonly grantedAtUs: number;
  untilUs: number;
  /** The user has released it, or has seen that it is lost. */
  over: boolean;
  /** The user counts on its signal. */
  listens: boolean;
  /** The outcome of a write is unknown: no other may follow it with the same token. */
  unsure: boolean;
}

/** A client and its users. */
export class SimulatedClient {
  readonly proc: string;
  readonly scene: Scene;
  readonly host: Host;
  readonly network: Network;
  readonly locks: LockManager;
  readonly dice: Dice;
  /** How many users are at work. */
  users = 0;
  /** How many calls of users have not ended. */
  pending = 0;
  #attempts = 0;
  #calls = 0;
  readonly #handles = new Set<Handle>();

  constructor(scene: Scene, index: number) {
    const { plan, world, store, ledger } = scene;
    this.scene = scene;
    this.proc = `c${index + 1}`;
    this.host = new Host(world, this.proc);
    this.dice = new Dice(plan.seed, 10 * index + 11);
    const fate = new Dice(plan.seed, 10 * index + 12);
    const chance = new Dice(plan.seed, 10 * index + 13);
    const backend = new MemoryBackend(store, () => {});
    this.network = new Network(backend, world, this.host, fate, ledger, plan);
    this.network.onRenewed = () => this.#look();
    this.locks = new LockManager(this.network, {
      clock: this.host,
      random: chance.fraction,
      clientId: this.proc,
      ttl: plan.ttlMs,
    });
  }

  record(event: Omit<NewEvent, "proc">): HistoryEvent {
    return this.scene.history.record({ proc: this.proc, ...event });
  }

  /** Records that a user asks for a lock, and gives the name of the attempt. */
  ask(
    f: "acquire" | "try",
    lock: string,
    what: Pick<NewEvent, "mode" | "ttl" | "steal" | "weight" | "permits">,
  ): string {
    this.#attempts += 1;
    const attempt = `${this.proc}.${this.#attempts}`;
    this.pending += 1;
    this.record({ f, type: "invoke", lock, attempt, ...what });
    return attempt;
  }

  /** Records a grant, and what its user may believe from now on. */
  granted(f: "acquire" | "try", attempt: string, lock: Lock): Handle {
    const { world, ledger, firstSeq } = this.scene;
    this.pending -= 1;
    const untilUs = world.nowUs + lock.validForMs * 1000;
    const token = lock.token - firstSeq;
    const event = this.record({ f, type: "ok", attempt, token, validUntil: nanoseconds(untilUs) });
    ledger.believed(this.proc, lock.token, event);
    const handle: Handle = {
      attempt,
      name: lock.name,
      lock,
      token,
      grantedAtUs: world.nowUs,
      untilUs,
      over: false,
      listens: false,
      unsure: false,
    };
    this.#handles.add(handle);
    return handle;
  }

  /** Records an entry that a section granted to a nested request. */
  entered(attempt: string, parent: Handle, lock: Lock): void {
    this.pending -= 1;
    const token = lock.token - this.scene.firstSeq;
    this.record({ f: "acquire", type: "ok", attempt, token, parent: parent.attempt });
  }

  busy(attempt: string): void {
    this.pending -= 1;
    this.record({ f: "try", type: "ok", attempt, busy: true });
  }

  /** Records that a user did not get a lock; whether its entry was in the queue for a while is not known. */
  refused(f: "acquire" | "try", attempt: string, error: unknown): void {
    this.pending -= 1;
    this.record({ f, type: "info", attempt, detail: this.explain(error) });
  }

  /** Records that a user stops acting on a lock. */
  leaves(handle: Handle): void {
    handle.over = true;
    this.#handles.delete(handle);
    this.pending += 1;
    this.record({ f: "release", type: "invoke", attempt: handle.attempt });
  }

  /** Records what became of a release. */
  left(handle: Handle, outcome: "released" | "gone" | "unknown", detail?: string): void {
    this.pending -= 1;
    const type = outcome === "released" ? "ok" : outcome === "gone" ? "fail" : "info";
    this.record({ f: "release", type, attempt: handle.attempt, ...(detail === undefined ? {} : { detail }) });
  }

  /** Whether the end of a section may be told as a success now. */
  isSure(handle: Handle): boolean {
    return this.scene.ledger.doubt(handle.lock.token) === null;
  }

  /** Records that a section was told to have been exclusive to its end, though it was not. */
  wasSureWrongly(handle: Handle): void {
    const message = `The section ${handle.attempt} ended well, though its lock was lost by then.`;
    this.scene.ledger.violate("M6", message, []);
  }

  /** A number for a call that others of its kind may overlap. */
  nextCall(): number {
    this.#calls += 1;
    return this.#calls;
  }

  /** A user looks whether it holds. */
  seesHeld(handle: Handle): boolean {
    this.#expectSignal(handle);
    const held = handle.lock.held;
    if (!held) {
      this.loses(handle);
      return false;
    }
    const event = this.record({ f: "held", type: "info", attempt: handle.attempt });
    this.scene.ledger.believed(this.proc, handle.lock.token, event);
    return true;
  }

  /** Records that a user has seen the loss of a lock. */
  loses(handle: Handle): void {
    if (handle.over) return;
    handle.over = true;
    this.#handles.delete(handle);
    this.record({ f: "lost", type: "info", attempt: handle.attempt });
  }

  /** The word for an error; one that no user should ever see is a violation. */
  explain(error: unknown): string {
    const { plan, ledger } = this.scene;
    const word =
      error instanceof LockError ? error.code : error instanceof DOMException ? error.name : String(error);
    const allowed = plan.calm && !plan.steals ? calmErrors : errors;
    if (!allowed.includes(word)) {
      ledger.violate("L3", `A call of ${JSON.stringify(this.proc)} failed with ${word}.`, []);
    }
    return word;
  }

  /** On a machine that was left alone for a while the signal must have come when validity was over. */
  #expectSignal({ listens, over, grantedAtUs, untilUs, attempt }: Handle): void {
    const { world, ledger } = this.scene;
    // Timers that were set before a machine stood still are late; the keeper looks once a second in any case.
    if (this.host.disturbedAtUs + 1_100_000 > grantedAtUs) return;
    if (!listens || over || world.nowUs < untilUs + 2000) return;
    ledger.violate("M6", `The validity of ${attempt} was over, but its signal was not aborted.`, []);
  }

  /** After a renewal: what its users may believe now. */
  #look(): void {
    if (this.host.dead) return;
    const { world } = this.scene;
    for (const handle of this.#handles) {
      const ms = handle.lock.validForMs;
      const untilUs = world.nowUs + ms * 1000;
      if (ms === 0) {
        this.loses(handle);
      } else if (untilUs > handle.untilUs + 1) {
        handle.untilUs = untilUs;
        const { attempt } = handle;
        this.record({ f: "renew", type: "invoke", attempt });
        this.record({ f: "renew", type: "ok", attempt, validUntil: nanoseconds(untilUs) });
      }
    }
  }
}

/** What users may be told when nothing goes wrong, and when something does. */
const calmErrors: readonly string[] = ["LOCK_TIMEOUT", "LOCK_ABORTED", "AbortError", "LOCK_UNAVAILABLE"];
const errors: readonly string[] = [...calmErrors, "LOCK_LOST", "LOCK_OUTCOME_UNKNOWN"];

function nanoseconds(us: number): bigint {
  return BigInt(Math.ceil(us * 1000));
}
