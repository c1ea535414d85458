/** What a run of `holdfast verify` has shown, as tables for people or as records for machines. */
import { MEANINGS } from "../../verify/meanings.ts";
import type { Row } from "../../verify/live/judge.ts";
import type { Verified } from "../../verify/live/verified.ts";
import { human } from "../human.ts";
import type { Output } from "../output.ts";
import { type Column, tableLines } from "../table.ts";

/** A run and what it was asked. */
export interface Told {
  readonly store: string;
  readonly seed: number;
  readonly forMs: number;
  readonly ttlMs: number;
  readonly clients: number;
  readonly files: readonly string[];
  readonly verified: Verified;
}

/** How many violations are spelled out. */
const spelledOut = 5;

/** Tells it. */
export function tellVerified(output: Output, told: Told): void {
  for (const [fault, reason] of told.verified.impossible) output.note("fault-impossible", { fault, reason });
  if (output.json) return tellMachines(output, told);
  const { verified, store, seed, forMs, ttlMs, clients, files } = told;
  const { judgement, writes, faults, grants, losses } = verified;
  output.line(`${store}: ${clients} clients for ${human(forMs)}, ttl ${human(ttlMs)}, seed ${seed}`);
  const brought = [...faults].map(([fault, count]) => `${count} ${fault}`).join(", ");
  const lost = losses === 1 ? "1 loss" : `${losses} losses`;
  output.line(`${grants} grants, ${lost}; faults: ${brought === "" ? "none" : brought}`);
  output.line();
  const rows = judgement.rows.map((row) => [
    row.invariant,
    MEANINGS[row.invariant],
    String(row.looked),
    String(row.found),
    wordOf(row),
  ]);
  for (const line of tableLines(invariantColumns, rows, output.width)) output.line(line);
  output.line();
  const resources = Object.entries(writes).map(([name, tally]) => [
    name,
    ...[tally.accepted, tally.staleAccepted, tally.refused, tally.falseRejects, tally.lost].map(String),
  ]);
  for (const line of tableLines(resourceColumns, resources, output.width)) output.line(line);
  output.line();
  for (const { invariant, message } of judgement.result.violations.slice(0, spelledOut)) {
    output.line(`${output.paint("bad", invariant)} ${message}`);
  }
  const tone = judgement.result.verdict === "valid" ? "good" : "bad";
  output.line(`${output.paint(tone, judgement.result.verdict)}: see ${files.join(" and ")}`);
}

function tellMachines(output: Output, { verified, files, ...asked }: Told): void {
  const { judgement, writes, faults, grants, losses, impossible } = verified;
  output.record({
    ...asked,
    verdict: judgement.result.verdict,
    grants,
    losses,
    faults: Object.fromEntries(faults),
    impossible: Object.fromEntries(impossible),
    invariants: judgement.rows,
    writes,
    doubts: judgement.result.doubts,
    violations: judgement.result.violations
      .slice(0, spelledOut)
      .map(({ invariant, message }) => ({ invariant, message })),
    files,
  });
}

const invariantColumns: readonly Column[] = [
  { title: "ID" },
  { title: "MUST HOLD", least: 20 },
  { title: "LOOKED AT", align: "right" },
  { title: "BROKEN", align: "right" },
  { title: "VERDICT", least: 10 },
];

const resourceColumns: readonly Column[] = [
  { title: "RESOURCE" },
  { title: "ACCEPTED", align: "right" },
  { title: "OF THEM STALE", align: "right" },
  { title: "REFUSED", align: "right" },
  { title: "FALSELY", align: "right" },
  { title: "LOST", align: "right" },
];

function wordOf({ looked, found, waived }: Row): string {
  if (waived !== null) return found > 0 ? `broken: ${waived}` : `${waived}; held all the same`;
  if (found > 0) return "BROKEN";
  return looked > 0 ? "holds" : "nothing to judge";
}
