/**
 * The record of what the users of one client ask, get and believe. What they do is left to workload.ts, whether it was
 * right to the checker.
 */
import { LockError } from "../../core/errors.ts";
import type { Lock } from "../../core/lock.ts";
import type { Violation } from "../checks/check.ts";
import type { NewEvent } from "../history.ts";
import type { Recording } from "./history-file.ts";

/** A lock that a user has. */
export interface Handle {
  readonly attempt: string;
  readonly name: string;
  readonly lock: Lock;
  /** What its listing has to show for people. */
  readonly metadata: string | undefined;
  /** Until when its holder may believe, as far as it was recorded. */
  validUntil: bigint;
  /** The user has released it, or has seen that it is lost. */
  over: boolean;
}

/** What a request asks for. */
export type Asked = Pick<NewEvent, "mode" | "ttl" | "weight" | "permits" | "steal" | "behind">;

const mostViolations = 20;

/** What a process suffers that stands still by itself. */
export const stall = "stall";

/** Records for one client. */
export class Observer {
  readonly proc: string;
  /** What no user should ever see, and what no history shows. */
  readonly violations: Violation[];
  /** How often the process stood still. */
  stalls = 0;
  readonly #history: Recording;
  readonly #siblings: Observer[] = [];
  readonly #handles = new Set<Handle>();
  #pending = 0;
  #grants = 0;
  #losses = 0;
  #attempts = 0;
  #calls = 0;

  constructor(history: Recording, proc: string, violations: Violation[] = []) {
    this.#history = history;
    this.proc = proc;
    this.violations = violations;
  }

  /** How many calls of users have not ended, those of siblings too. */
  get pending(): number {
    return this.#siblings.reduce((sum, { pending }) => sum + pending, this.#pending);
  }

  get grants(): number {
    return this.#siblings.reduce((sum, { grants }) => sum + grants, this.#grants);
  }

  get losses(): number {
    return this.#siblings.reduce((sum, { losses }) => sum + losses, this.#losses);
  }

  /** Its own name and those of its siblings. */
  get procs(): readonly string[] {
    return [this.proc, ...this.#siblings.map(({ proc }) => proc)];
  }

  /** Records for another client of the same process; what it counts and finds is found here, too. */
  sibling(word: string): Observer {
    const name = `${this.proc}/${word}${this.#siblings.length + 1}`;
    const sibling = new Observer(this.#history, name, this.violations);
    this.#siblings.push(sibling);
    return sibling;
  }

  record(event: Omit<NewEvent, "proc">, t?: bigint): void {
    this.#history.record({ proc: this.proc, ...event }, t);
  }

  /** A number that no other value or call of this client has. */
  next(): number {
    this.#calls += 1;
    return this.#calls;
  }

  /** Somebody asks for a lock; gives the name of the attempt. */
  ask(f: "acquire" | "try", lock: string, asked: Asked): string {
    this.#attempts += 1;
    const attempt = `${this.proc}.${this.#attempts}`;
    this.#pending += 1;
    this.record({ f, type: "invoke", lock, attempt, ...asked });
    return attempt;
  }

  granted(f: "acquire" | "try", attempt: string, lock: Lock, metadata?: string): Handle {
    this.#pending -= 1;
    this.#grants += 1;
    const { t, validUntil } = readValidity(lock);
    this.record({ f, type: "ok", attempt, token: this.#tokenOf(lock), validUntil }, t);
    const handle: Handle = { attempt, name: lock.name, lock, metadata, validUntil, over: false };
    this.#handles.add(handle);
    const lose = (): void => this.loses(handle);
    if (lock.signal.aborted) lose();
    else lock.signal.addEventListener("abort", lose, { once: true });
    return handle;
  }

  busy(attempt: string): void {
    this.#pending -= 1;
    this.record({ f: "try", type: "ok", attempt, busy: true });
  }

  /** A user did not get a lock; whether its entry was in the queue for a while is not known. */
  refused(f: "acquire" | "try", attempt: string, error: unknown, hasty: boolean): void {
    this.#pending -= 1;
    const detail = this.explain(error);
    this.record({ f, type: "info", attempt, detail });
    if (detail === "LOCK_TIMEOUT" && !hasty) this.violate("L3", "Its wait was over, though it gave none.");
  }

  /** A user forgets a lock that nobody renews: it is not released, and ends with its ttl. */
  abandons(handle: Handle): void {
    this.#look(handle);
    handle.over = true;
    this.#handles.delete(handle);
  }

  /** A user stops acting on a lock. */
  leaves(handle: Handle): void {
    this.#look(handle);
    handle.over = true;
    this.#handles.delete(handle);
    this.#pending += 1;
    this.record({ f: "release", type: "invoke", attempt: handle.attempt });
  }

  /** What became of a release. */
  left({ attempt }: Handle, outcome: "released" | "gone" | "unknown"): void {
    this.#pending -= 1;
    const type = outcome === "released" ? "ok" : outcome === "gone" ? "fail" : "info";
    this.record({ f: "release", type, attempt });
  }

  /** A user looks whether it holds. */
  seesHeld(handle: Handle): boolean {
    this.#look(handle);
    if (handle.over) return false;
    // Taken before the look: who holds a moment later has held now.
    const t = process.hrtime.bigint();
    if (!handle.lock.held) {
      this.loses(handle);
      return false;
    }
    this.record({ f: "held", type: "info", attempt: handle.attempt }, t);
    return true;
  }

  loses(handle: Handle): void {
    if (handle.over) return;
    handle.over = true;
    this.#losses += 1;
    this.#handles.delete(handle);
    this.record({ f: "lost", type: "info", attempt: handle.attempt });
  }

  /** Looks at all that is held: what renewals have brought. To be called often. */
  look(): void {
    for (const handle of this.#handles) this.#look(handle);
    for (const sibling of this.#siblings) sibling.look();
  }

  /** The process stood still: nobody broke it, but on a busy machine a lock may be lost by that. */
  stalled(from: bigint, until: bigint): void {
    this.stalls += 1;
    const about = { f: "fault", fault: stall, target: this.proc } as const;
    this.record({ ...about, type: "invoke" }, from);
    this.record({ ...about, type: "ok" }, until);
  }

  explain(error: unknown): string {
    const word =
      error instanceof LockError ? error.code : error instanceof Error ? error.name : String(error);
    if (!expected.includes(word)) {
      this.violate(
        "L3",
        `A call failed with ${error instanceof Error ? `${word}: ${error.message}` : word}.`,
      );
    }
    return word;
  }

  violate(invariant: Violation["invariant"], message: string): void {
    if (this.violations.length < mostViolations) {
      this.violations.push({ invariant, message: `${this.proc}: ${message}`, events: [] });
    }
  }

  /** What is held now of a name. */
  holding(name: string): readonly Handle[] {
    return [...this.#handles].filter((handle) => handle.name === name);
  }

  /** A token that is a number has lost digits, or will. */
  #tokenOf({ token }: { readonly token: unknown }): bigint {
    if (typeof token === "bigint") return token;
    this.violate("M2", `A token is a ${typeof token}.`);
    return BigInt(String(token));
  }

  #look(handle: Handle): void {
    if (handle.over) return;
    const { t, validUntil } = readValidity(handle.lock);
    if (validUntil === t) return this.loses(handle);
    if (validUntil - handle.validUntil < 1_000_000n) return;
    handle.validUntil = validUntil;
    const { attempt } = handle;
    this.record({ f: "renew", type: "invoke", attempt }, t);
    this.record({ f: "renew", type: "ok", attempt, validUntil }, t);
  }
}

/** What users may be told when something goes wrong. */
const expected: readonly string[] = [
  "LOCK_TIMEOUT",
  "LOCK_ABORTED",
  "AbortError",
  "LOCK_UNAVAILABLE",
  "LOCK_LOST",
  "LOCK_OUTCOME_UNKNOWN",
];

/** A moment, and until when a lock is believed from then on. A stop between the two readings would make it too late. */
function readValidity(lock: Lock): { t: bigint; validUntil: bigint } {
  for (let tries = 0; ; tries += 1) {
    const t = process.hrtime.bigint();
    const validUntil = t + BigInt(Math.floor(lock.validForMs * 1e6));
    if (process.hrtime.bigint() - t < 1_000_000n || tries === 10) return { t, validUntil };
  }
}
