/** What a contract case is: a name, what it needs of a store, and what it does on a stage. Cases are data; who runs them is written elsewhere. */
import { type Backend, isBrowsable } from "../core/backend.ts";
import type { Stage } from "./stage.ts";

/** One thing that every store must do, or every store that declares a certain trait. */
export interface ContractCase {
  /** Unique among all cases: skips name it. */
  readonly name: string;
  readonly group: string;
  /** What a store must declare for the case to apply. */
  readonly needs: readonly Need[];
  /** Rejects if the store breaks the law; ends within a bound of its own. */
  run(t: Stage): Promise<void>;
}

/** Something that a store may declare; a case that needs what is lacking does not apply. */
export type Need =
  | "order"
  | "call order"
  | "shared"
  | "no shared"
  | "counted"
  | "no counted"
  | "tokens"
  | "browsing"
  | "hand-over";

const met: Readonly<Record<Need, (backend: Backend) => boolean>> = {
  order: ({ traits }) => traits.order === "fifo",
  "call order": ({ traits }) => traits.callOrder,
  shared: ({ traits }) => traits.shared,
  "no shared": ({ traits }) => !traits.shared,
  counted: ({ traits }) => traits.counted,
  "no counted": ({ traits }) => !traits.counted,
  tokens: ({ traits }) => traits.tokens !== null,
  browsing: isBrowsable,
  "hand-over": (backend) => backend.handOver !== undefined,
};

/** The first need of a case that a backend does not meet; null if the case applies. */
export function unmetNeed({ needs }: ContractCase, backend: Backend): Need | null {
  return needs.find((need) => !met[need](backend)) ?? null;
}

/** Makes cases of one group. */
export function caseOf(
  group: string,
): (name: string, needs: readonly Need[], run: (t: Stage) => Promise<void>) => ContractCase {
  return (name, needs, run) => ({ name, group, needs, run });
}
