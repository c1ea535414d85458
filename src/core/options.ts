/** The options of a request as callers write them, checked before anything is queued. */
import { type Duration, durationMs } from "./duration.ts";
import { invalid, notSupported } from "./errors.ts";
import type { LockSet } from "./lock-set.ts";
import type { Lock } from "./lock.ts";
import { checkMetadata, typeName } from "./names.ts";
import type { Wish } from "./wish.ts";

/** How a lock is shared, as in the standard. */
export type LockMode = "exclusive" | "shared";

/** What a fleet needs beyond the standard; common to all ways of asking. */
export interface HoldOptions {
  /**
   * How long an entry lives that is not renewed.
   * @default "30s"
   */
  readonly ttl?: Duration | undefined;
  /**
   * Whether a watchdog renews the lock while it is held.
   * @default true
   */
  readonly renew?: boolean | undefined;
  /** A bound on how long the watchdog goes on; the lock is then lost. No bound unless given. */
  readonly maxHold?: Duration | undefined;
  /** A small text for people, shown in listings. */
  readonly metadata?: string | undefined;
}

/** Options of `acquire`. */
export interface AcquireOptions extends HoldOptions {
  /** @default "exclusive" */
  readonly mode?: LockMode | undefined;
  /** Evict whoever holds or waits. Not with `signal`, and only for exclusive locks. */
  readonly steal?: boolean | undefined;
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait; for ever unless given. */
  readonly wait?: Duration | undefined;
}

/** Options of `tryAcquire`. */
export interface TryOptions extends HoldOptions {
  /** @default "exclusive" */
  readonly mode?: LockMode | undefined;
}

/** Options of `request`: those of the standard, and those of `acquire`. */
export interface RequestOptions extends AcquireOptions {
  /** Call back with null rather than wait. Not with `steal`, `signal` or `wait`. */
  readonly ifAvailable?: boolean | undefined;
  /**
   * Whether a request made inside the callback of another one of the same lock enters at once, with the same token.
   * Both have to say so.
   * @default false
   */
  readonly reentrant?: boolean | undefined;
}

/** Options of a semaphore's ways of asking. */
export interface PermitOptions extends HoldOptions {
  /**
   * How many permits to take.
   * @default 1
   */
  readonly weight?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly wait?: Duration | undefined;
  /** Only for `request`: call back with null rather than wait. */
  readonly ifAvailable?: boolean | undefined;
}

/** The callback of a request: the caller's overload decides which of these it takes. */
export type AnyCallback = (granted: Lock | LockSet | null) => unknown;

/** A wish without the lock that it is for, and what the manager itself has to know. */
export interface Asked extends Omit<Wish, "name" | "queue" | "permits"> {
  readonly reentrant: boolean;
}

type OptionName = keyof RequestOptions | keyof PermitOptions;

const holdNames = ["ttl", "renew", "maxHold", "metadata"] as const;
/** Which options each way of asking takes. */
export const optionNames: Readonly<
  Record<
    "request" | "acquire" | "tryAcquire" | "permitRequest" | "permitAcquire" | "permitTry",
    readonly OptionName[]
  >
> = {
  request: [...holdNames, "mode", "ifAvailable", "steal", "signal", "wait", "reentrant"],
  acquire: [...holdNames, "mode", "steal", "signal", "wait"],
  tryAcquire: [...holdNames, "mode"],
  permitRequest: [...holdNames, "weight", "signal", "wait", "ifAvailable"],
  permitAcquire: [...holdNames, "weight", "signal", "wait"],
  permitTry: [...holdNames, "weight"],
};

const forEver = Number.POSITIVE_INFINITY;

/** What is asked for when nothing is said. */
export const plainly: Asked = {
  mode: "exclusive",
  steal: false,
  ifAvailable: false,
  reentrant: false,
  signal: undefined,
  weight: 1,
  ttlMs: 30_000,
  waitMs: forEver,
  renew: true,
  maxHoldMs: forEver,
  metadata: undefined,
};

/** Checks options; `defaults` come from the manager. Throws what the standard names, else a TypeError. */
export function checkOptions(options: unknown, allowed: readonly OptionName[], defaults: Asked): Asked {
  if (options === undefined || options === null) return defaults;
  const object = asObject(options);
  refuseOthers(object, allowed);
  const given = readOnce(object);
  const mode = given.mode === undefined ? defaults.mode : checkMode(given.mode);
  const steal = flag(given.steal, "steal", false);
  const ifAvailable = flag(given.ifAvailable, "ifAvailable", defaults.ifAvailable);
  const reentrant = flag(given.reentrant, "reentrant", defaults.reentrant);
  const { signal, wait } = given;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalid(`signal must be an AbortSignal, not ${typeName(signal)}`);
  }
  if (steal && ifAvailable) throw notSupported("steal and ifAvailable exclude each other");
  if (steal && mode !== "exclusive") throw notSupported("only an exclusive lock can be stolen");
  if (signal !== undefined && steal) throw notSupported("signal and steal exclude each other");
  if (signal !== undefined && ifAvailable) throw notSupported("signal and ifAvailable exclude each other");
  if (steal && given.reentrant === true) throw notSupported("steal and reentrant exclude each other");
  if (wait !== undefined && ifAvailable) throw notSupported("wait and ifAvailable exclude each other");
  return {
    mode,
    steal,
    ifAvailable,
    reentrant: reentrant && !steal,
    signal,
    weight: given.weight === undefined ? 1 : checkWeight(given.weight),
    ttlMs: given.ttl === undefined ? defaults.ttlMs : durationMs(given.ttl, { option: "ttl", leastMs: 1 }),
    waitMs: waitOf(wait, ifAvailable),
    renew: flag(given.renew, "renew", true),
    maxHoldMs:
      given.maxHold === undefined ? forEver : durationMs(given.maxHold, { option: "maxHold", leastMs: 1 }),
    metadata: given.metadata === undefined ? undefined : checkMetadata(given.metadata),
  };
}

/** What an object says: each option is read once, in the order of the alphabet, as the standard reads a dictionary. */
function readOnce(given: RequestOptions & PermitOptions): RequestOptions & PermitOptions {
  const { ifAvailable, maxHold, metadata, mode, reentrant, renew, signal, steal, ttl, wait, weight } = given;
  return { ifAvailable, maxHold, metadata, mode, reentrant, renew, signal, steal, ttl, wait, weight };
}

/** What is asked for, of a certain queue. Written out, since this runs for each request and a spread is slow. */
export function wishFor(asked: Asked, name: string, queue: string, permits?: number): Wish {
  return {
    name,
    queue,
    permits,
    mode: asked.mode,
    weight: asked.weight,
    ttlMs: asked.ttlMs,
    waitMs: asked.waitMs,
    ifAvailable: asked.ifAvailable,
    steal: asked.steal,
    renew: asked.renew,
    maxHoldMs: asked.maxHoldMs,
    metadata: asked.metadata,
    signal: asked.signal,
  };
}

/** The prefix that a query asks for. */
export function checkQuery(options: unknown): string {
  if (options === undefined || options === null) return "";
  const given: { prefix?: unknown } = asObject(options);
  for (const key of Object.keys(given)) {
    if (key !== "prefix") throw invalid(`there is no option ${JSON.stringify(key)} here; there is prefix`);
  }
  const { prefix = "" } = given;
  if (typeof prefix !== "string") throw invalid(`prefix must be a string, not ${typeName(prefix)}`);
  return prefix;
}

/** The callback of a request: the last argument, after the options or in their place. */
export function callbackOf(optionsOrCallback: unknown, callback: unknown): AnyCallback {
  const last = callback === undefined ? optionsOrCallback : callback;
  if (isFunction(last)) return last;
  throw invalid(`the callback must be a function, not ${typeName(last)}`);
}

function isFunction(value: unknown): value is AnyCallback {
  return typeof value === "function";
}

/** An object that is no array; anything else is refused. */
export function asObject(options: unknown, what = "options"): object {
  if (typeof options === "object" && options !== null && !Array.isArray(options)) return options;
  throw invalid(`${what} must be an object, not ${typeName(options)}`);
}

/** Refuses an option that does not exist: a misspelt one should not go unnoticed. */
export function refuseOthers(given: object, allowed: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (!allowed.includes(key)) {
      throw invalid(`there is no option ${JSON.stringify(key)} here; there are ${allowed.join(", ")}`);
    }
  }
}

function waitOf(wait: unknown, ifAvailable: boolean): number {
  if (ifAvailable) return 0;
  return wait === undefined ? forEver : durationMs(wait, { option: "wait", leastMs: 0, forEver: true });
}

function checkMode(mode: unknown): LockMode {
  if (mode === "exclusive" || mode === "shared") return mode;
  const shown = typeof mode === "string" ? JSON.stringify(mode) : typeName(mode);
  throw invalid(`mode must be "exclusive" or "shared", not ${shown}`);
}

function flag(value: unknown, option: string, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value === "boolean") return value;
  throw invalid(`${option} must be true or false, not ${typeName(value)}`);
}

/** A number of permits. */
export function checkWeight(value: unknown, what = "weight"): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 1_000_000) return value;
  throw invalid(
    `${what} must be a whole number from 1 to 1,000,000, not ${typeof value === "number" ? value : typeName(value)}`,
  );
}
