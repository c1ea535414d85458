/** Durations as callers write them: milliseconds, or text such as "30s"; checked once, at the edge. */
import { invalid } from "./errors.ts";
import { typeName } from "./names.ts";

/** Milliseconds, or a number with a unit: "250ms", "30s", "1.5m", "2h", "1d". */
export type Duration = number | string;

const dayMs = 86_400_000;
const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: dayMs };
const form = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** The longest duration that is accepted: anything longer is a mistake in the unit. */
const longestMs = 366 * dayMs;

interface Bounds {
  /** The option's name, for the message. */
  readonly option: string;
  readonly leastMs: number;
  /** Whether Infinity is allowed. */
  readonly forEver?: boolean;
}

/** A duration in milliseconds; anything else is refused with a message that says what is allowed. */
export function durationMs(value: unknown, bounds: Bounds): number {
  if (value === Number.POSITIVE_INFINITY && bounds.forEver) return value;
  const ms = typeof value === "number" ? value : parse(value);
  if (Number.isFinite(ms) && ms >= bounds.leastMs && ms <= longestMs) return ms;
  const shown = typeof value === "string" ? JSON.stringify(value) : showOther(value);
  // All that a command line gives is text.
  const forms = bounds.option.startsWith("--") ? "a number with a unit" : "milliseconds or text";
  throw invalid(
    `${bounds.option} is ${shown}: give ${forms} such as "30s" (units ms, s, m, h, d), ` +
      `at least ${bounds.leastMs} ms and at most 366 days${bounds.forEver ? ", or Infinity" : ""}`,
  );
}

function showOther(value: unknown): string {
  return typeof value === "number" ? String(value) : typeName(value);
}

function parse(value: unknown): number {
  const match = typeof value === "string" ? form.exec(value) : null;
  if (match === null) return Number.NaN;
  const [, number, unit = ""] = match;
  return Number(number) * (unitMs[unit] ?? Number.NaN);
}

/** A duration as people read it: 30000 is "30s". */
export function showMs(ms: number): string {
  for (const unit of ["d", "h", "m", "s"]) {
    const size = unitMs[unit] ?? Number.NaN;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${Math.round(ms * 1000) / 1000}ms`;
}
