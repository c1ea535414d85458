/** Runs a command while a lock is held: guards it, forwards signals to it, and waits until all of it has ended. */
import { showMs } from "../../core/duration.ts";
import type { Lock } from "../../core/lock.ts";
import type { Output } from "../output.ts";
import { human } from "../human.ts";
import { type Ended, ProcessGroup } from "./group.ts";
import { Guard } from "./guard.ts";
import type { Receiver } from "./signals.ts";
import type { RunWish } from "./wish.ts";

/** What became of a command. */
export interface Finished {
  readonly ended: Ended;
  /** The strongest signal that it got because its lock was about to be lost or was lost; null if it was left in peace. */
  readonly guardSent: "SIGTERM" | "SIGKILL" | null;
  /** Whether that was because of --max-hold. */
  readonly heldTooLong: boolean;
}

/** How often a group is looked at whose command has ended: nobody tells when the last of a group ends. */
const lookMs = 20;
/** The same after SIGKILL, when it is a matter of moments. */
const lookSoonMs = 2;
/** How long a group may take to end before people are told that it is waited for. */
const patienceMs = 1_000;

/** Hands signals to the command; until there is one, to whoever waits for the lock. */
export class Relay implements Receiver {
  #group: ProcessGroup | null = null;
  #guard: Guard | null = null;
  readonly #onEarly: (signal: NodeJS.Signals) => void;

  constructor(onEarly: (signal: NodeJS.Signals) => void) {
    this.#onEarly = onEarly;
  }

  received(signal: NodeJS.Signals): void {
    if (this.#group === null) this.#onEarly(signal);
    else this.#group.signal(signal);
  }

  /** A command that goes on while we cannot renew would outlive its lock: it stops with us. */
  stopping(): void {
    this.#group?.stop();
  }

  /** If the lock was lost meanwhile the command never goes on: SIGKILL reaches stopped processes, too. */
  continuing(): void {
    this.#guard?.check();
    if (this.#guard?.sent !== "SIGKILL") this.#group?.signal("SIGCONT");
  }

  /** From now on the command gets the signals. */
  direct(group: ProcessGroup, guard: Guard): void {
    this.#group = group;
    this.#guard = guard;
  }
}

/** Runs the command to its end and the end of its group. Rejects with a Failure if it cannot be started. */
export async function runHeld(
  lock: Lock,
  wish: RunWish,
  command: readonly string[],
  surroundings: { readonly env: NodeJS.ProcessEnv; readonly output: Output; readonly relay: Relay },
): Promise<Finished> {
  const { env, output, relay } = surroundings;
  const { maxHoldMs = Number.POSITIVE_INFINITY, ttlMs, plan } = wish;
  // Where it ends long before a ttl does, it is what bounds the lock, which counts from the grant: since then this process may have stood still.
  const holdEndsAt = performance.now() + (maxHoldMs < ttlMs / 2 ? lock.validForMs : maxHoldMs);
  const tooLong = (): boolean => performance.now() >= holdEndsAt - plan.graceMs - 3 * plan.reserveMs;
  const [program = "", ...args] = command;
  const group = await ProcessGroup.start(program, args, {
    ...env,
    HOLDFAST_NAME: lock.name,
    // Not that of a command around this one, either.
    HOLDFAST_TOKEN: lock.toJSON().token ?? undefined,
  });
  let heldTooLong = false;
  const target = {
    signal(name: "SIGTERM" | "SIGKILL"): void {
      heldTooLong ||= !lock.signal.aborted && tooLong();
      group.signal(name);
    },
  };
  const guard = new Guard(lock, target, wish.plan, () => {
    const reason = heldTooLong
      ? `its --max-hold of ${showMs(wish.maxHoldMs ?? 0)} is nearly over`
      : "no renewal has been answered";
    output.note("losing-soon", { name: quote(lock.name), reason, grace: human(wish.plan.graceMs) });
  });
  relay.direct(group, guard);
  // If this process ends before its time, by a bug, nobody would be left to end the command.
  const abandon = (): void => group.signal("SIGKILL");
  process.on("exit", abandon);
  const ended = await group.ended;
  await untilEmpty(group, guard, (pids) => {
    output.note("left-running", {
      name: quote(lock.name),
      count: processes(pids.length),
      pids: pids.join(", "),
    });
  });
  process.off("exit", abandon);
  guard.stop();
  return { ended, guardSent: guard.sent, heldTooLong };
}

async function untilEmpty(
  group: ProcessGroup,
  guard: Guard,
  onPatienceOver: (pids: readonly number[]) => void,
): Promise<void> {
  const startedAt = performance.now();
  let told = false;
  for (;;) {
    const pids = group.members();
    if (pids.length === 0) return;
    const killed = guard.sent === "SIGKILL";
    if (killed) group.signal("SIGKILL");
    if (!told && performance.now() - startedAt > patienceMs) {
      told = true;
      onPatienceOver(pids);
    }
    await new Promise((resolve) => setTimeout(resolve, killed ? lookSoonMs : lookMs));
  }
}

function processes(count: number): string {
  return count === 1 ? "1 process" : `${count} processes`;
}

/** A name as messages show it. */
export function quote(name: string): string {
  return JSON.stringify(name);
}
