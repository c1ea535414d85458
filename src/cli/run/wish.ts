/** What `holdfast run` is asked for: its options, checked before anything is queued. */
import { isUtf8 } from "node:buffer";
import { existsSync, readFileSync } from "node:fs";
import { durationMs, showMs } from "../../core/duration.ts";
import { checkMetadata, checkName } from "../../core/names.ts";
import type { Call } from "../command.ts";
import { Failure } from "../messages.ts";
import type { Plan } from "./guard.ts";

/** How a lock is to be taken and how its command is to be ended. */
export interface RunWish {
  readonly name: string;
  readonly mode: "shared" | "exclusive";
  readonly ttlMs: number;
  /** Infinity: for ever; null: not at all. */
  readonly waitMs: number | null;
  readonly maxHoldMs: number | undefined;
  readonly metadata: string | undefined;
  readonly plan: Plan;
}

const defaultTtl = "30s";
/** With less, half of it would not suffice to renew in, beside the reserve. */
const leastTtlMs = 500;
const leastReserveMs = 100;
const mostReserveMs = 1_000;
/** However long the ttl, nobody is asked to wait longer than this for a command that does not end, unless they say so. */
const longestDefaultGraceMs = 10_000;

/** Reads the options of a call. Throws what the core throws on values that are not allowed. */
export function runWish(call: Call): RunWish {
  const { given, positionals } = call;
  checkBytes([...positionals, ...call.rest]);
  if (given.flag("if-available") && given.value("wait") !== undefined) {
    throw new Failure("options-exclude", { one: "--if-available", other: "--wait" });
  }
  const metadata = given.value("metadata");
  const ttlMs = durationMs(given.value("ttl") ?? defaultTtl, { option: "--ttl", leastMs: leastTtlMs });
  const maxHold = given.value("max-hold");
  const maxHoldMs =
    maxHold === undefined ? undefined : durationMs(maxHold, { option: "--max-hold", leastMs: 100 });
  return {
    name: checkName(positionals[0]),
    mode: given.flag("shared") ? "shared" : "exclusive",
    ttlMs,
    waitMs: waitOf(call),
    maxHoldMs,
    metadata: metadata === undefined ? undefined : checkMetadata(metadata),
    plan: {
      graceMs: graceOf(call, ttlMs, maxHoldMs),
      reserveMs: reserveOf(Math.min(ttlMs, maxHoldMs ?? ttlMs)),
    },
  };
}

/** Node reads what is no UTF-8 as U+FFFD: the command would get another argument, and two names would become one. */
function checkBytes(words: readonly string[]): void {
  const line = "/proc/self/cmdline";
  if (!words.some((word) => word.includes("\ufffd")) || !existsSync(line) || isUtf8(readFileSync(line)))
    return;
  const reason = "an argument is not UTF-8, and could not be handed on as it is";
  throw new Failure("value-refused", { reason, command: "run" });
}

/** A twentieth of what there is, within bounds: timers are late and dying takes its time on a busy machine. */
function reserveOf(lifeMs: number): number {
  const wanted = Math.min(Math.max(leastReserveMs, lifeMs / 20), mostReserveMs);
  return Math.min(wanted, lifeMs / 10);
}

function waitOf({ given }: Call): number | null {
  if (given.flag("if-available")) return null;
  const wait = given.value("wait");
  return wait === undefined ? Number.POSITIVE_INFINITY : durationMs(wait, { option: "--wait", leastMs: 0 });
}

/** A fifth of what there is; what is asked for, if it is at most half: a lock that is renewed is valid for longer than that. */
function graceOf({ given }: Call, ttlMs: number, maxHoldMs = Number.POSITIVE_INFINITY): number {
  const grace = given.value("kill-grace");
  const most = Math.min(ttlMs, maxHoldMs);
  if (grace === undefined) return Math.min(most / 5, longestDefaultGraceMs);
  const graceMs = durationMs(grace, { option: "--kill-grace", leastMs: 0 });
  if (graceMs <= most / 2) return graceMs;
  const bound = most === ttlMs ? `the ttl of ${showMs(ttlMs)}` : `the --max-hold of ${showMs(most)}`;
  throw new Failure("grace-too-long", { grace: showMs(graceMs), bound });
}
