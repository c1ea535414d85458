/** Who has a lock, judged by what several nodes say; pure. */
import { lifeOf } from "./quorum.ts";
import type { Held } from "./values.ts";

/** Who has a lock, and for how long. */
export interface Holder {
  readonly held: Held;
  readonly leftMs: number;
}

/** Who has it on at least so many nodes, and for how long on so many. */
export function holderOf(seen: readonly Holder[], least: number): Holder | null {
  for (const { held } of seen) {
    const same = seen.filter((other) => other.held.id === held.id);
    if (same.length < least) continue;
    const seq = same.reduce((highest, one) => (one.held.seq > highest ? one.held.seq : highest), 0n);
    const lives = same.map((one) => one.leftMs);
    return { held: { ...held, seq }, leftMs: lifeOf(lives, least) };
  }
  return null;
}
