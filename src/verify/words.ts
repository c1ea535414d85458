/**
 * How lock names, grants and moments are written in messages for people. Names are somebody else's text, so they are
 * quoted here; a page that shows a message escapes it once more.
 */
import type { Grant } from "./trace.ts";

/** A name in quotes, with control characters made visible, cut where it is very long. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 79)}…` : name);
}

/** A holder as people tell it from others. */
export function holder(grant: Grant): string {
  const token = grant.token === undefined ? `attempt ${quote(grant.attempt.id)}` : `token ${grant.token}`;
  return `${quote(grant.proc)} (${token})`;
}

/** A length of time in the largest unit that leaves a number above one. */
export function span(ns: bigint): string {
  const n = Number(ns);
  if (Math.abs(n) < 1e3) return `${n} ns`;
  if (Math.abs(n) < 1e6) return `${trim(n / 1e3)} µs`;
  if (Math.abs(n) < 1e9) return `${trim(n / 1e6)} ms`;
  return `${trim(n / 1e9)} s`;
}

function trim(n: number): string {
  return String(Number(n.toPrecision(4)));
}
