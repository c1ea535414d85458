/** A request for a lock that a case enters and leaves when it wants to. */
import type { Lock } from "../core/lock.ts";
import type { LockManager } from "../core/manager.ts";
import type { RequestOptions } from "../core/options.ts";
import { Gate } from "./gate.ts";
import { type Observed, observe } from "./stage.ts";

/** A request under way: where it stands, and how to end its callback. */
export interface Section {
  /** Whether the callback has been called. */
  readonly entered: boolean;
  /** What the callback was called with; null before that, and when the lock was not available. */
  readonly lock: Lock | null;
  readonly done: Observed<unknown>;
  /** Lets the callback end, now or as soon as it is called. */
  leave(): void;
}

/** Requests a lock; its callback goes on until `leave`. */
export function request(locks: LockManager, name: string, options: RequestOptions = {}): Section {
  const gate = new Gate();
  const section: { entered: boolean; lock: Lock | null; leave: () => void } = {
    entered: false,
    lock: null,
    leave: () => gate.open(),
  };
  const done = observe(
    locks.request(name, options, async (lock: Lock | null) => {
      section.entered = true;
      section.lock = lock;
      await gate.opened;
    }),
  );
  return Object.assign(section, { done });
}

/** How many callbacks are being run now, of each mode, and whether that is allowed. */
export class Inside {
  readonly #inside = new Map<string, { exclusive: number; shared: number }>();

  /** Enters; throws if somebody is inside who excludes it. Gives the function that leaves. */
  enter(name: string, mode: "exclusive" | "shared"): () => void {
    const inside = this.#inside.get(name) ?? { exclusive: 0, shared: 0 };
    this.#inside.set(name, inside);
    inside[mode] += 1;
    const { exclusive, shared } = inside;
    if (exclusive > 1 || (exclusive === 1 && shared > 0)) {
      throw new Error(`${exclusive} exclusive and ${shared} shared holders of ${name} at once`);
    }
    return () => {
      inside[mode] -= 1;
    };
  }
}
