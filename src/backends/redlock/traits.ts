/** What independent servers promise together, as data. */
import type { Fault, Traits } from "../../core/backend.ts";

/** What independent servers promise together. */
export function redlockTraits(fencing: boolean, quarantine: boolean): Traits {
  const restarts: readonly Fault[] = quarantine ? [] : ["store-restart"];
  return {
    scope: "network",
    order: "none",
    shared: false,
    counted: false,
    expiry: "store",
    tokens: fencing ? "more than any that a majority of nodes has seen" : null,
    wake: "push",
    exclusivityBrokenBy: [...restarts, "fail-over", "clock-step", "eviction"],
    tokensRegressAfter: [...restarts, "fail-over", "eviction"],
    callOrder: true,
  };
}
