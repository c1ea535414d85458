/** `holdfast doctor`: what can be seen of a store without changing it, and what to do about it. */
import { type Backend, type Finding, isBrowsable, isExaminable } from "../../core/backend.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { printable } from "../human.ts";
import { Failure } from "../messages.ts";
import type { Output, Tone } from "../output.ts";
import { viewAll } from "../picture.ts";
import { explained, openStore, storeOf, within } from "../store.ts";

const tones: Readonly<Record<Finding["level"], Tone>> = { ok: "good", warning: "careful", problem: "bad" };

export const doctor: Command = {
  name: "doctor",
  summary: "Examine the store on which the locks live",
  usage: "[options]",
  takes: { names: [], least: 0 },
  about: [
    "Changes nothing, but that a SQLite file that is missing is made. Each finding is ok, a warning (a promise may break) or a problem (a promise does not hold now), with what to do. Ends with 1 if there is a problem.",
  ],
  options: {},
  examples: [
    ["holdfast doctor", "look at the default store"],
    ["holdfast doctor --store redis://cache:6379 --json", "the same for machines, one object per finding"],
  ],

  async run(call) {
    const findings = await explained(call, async () => {
      const backend = await openStore(call);
      try {
        return [...(await generalFindings(backend)), ...(await ownFindings(backend))];
      } finally {
        await within(1_000, backend.close());
      }
    });
    for (const finding of findings) tell(call, finding);
    if (findings.every(({ level }) => level !== "problem")) return exitCodes.ok;
    throw new Failure("store-problem", { store: storeOf(call) });
  },
};

function tell({ output }: Call, finding: Finding): void {
  if (output.json) output.record(finding);
  else for (const line of findingLines(finding, output)) output.line(line);
}

/** A finding for people. */
export function findingLines({ level, about, seen, todo }: Finding, output: Output): readonly string[] {
  const first = `${output.paint(tones[level], level.padEnd(8))} ${printable(about)}: ${printable(seen)}`;
  return todo === undefined ? [first] : [first, `${" ".repeat(9)}to do: ${printable(todo)}`];
}

/** What every store can be asked. */
export async function generalFindings(backend: Backend): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const startedAt = performance.now();
  const views = isBrowsable(backend) ? await viewAll(backend, "") : [];
  const ms = Math.round(performance.now() - startedAt);
  const held = views.reduce((sum, view) => sum + view.held.length, 0);
  const waiting = views.reduce((sum, view) => sum + view.waiting.length, 0);
  const seen = isBrowsable(backend)
    ? `${views.length} names in use, ${held} holders, ${waiting} waiters, read in ${ms} ms`
    : `${backend.name} cannot list its locks`;
  findings.push({ level: isBrowsable(backend) ? "ok" : "warning", about: "answers", seen });
  const { scope, tokens, exclusivityBrokenBy } = backend.traits;
  if (scope === "process") {
    const todo = "use sqlite or a server: with this store holdfast run excludes nobody";
    findings.push({
      level: "problem",
      about: "reach",
      seen: "it excludes only clients of the same process",
      todo,
    });
  } else {
    findings.push({ level: "ok", about: "reach", seen: `it excludes all clients of the same ${scope}` });
  }
  const broken = exclusivityBrokenBy.join(", ");
  if (broken !== "") {
    const todo = "let the resource compare tokens (docs/guarantees.md)";
    findings.push({ level: "warning", about: "faults", seen: `two may hold at once after: ${broken}`, todo });
  }
  if (tokens === null) {
    const todo = "use a store with tokens where the resource can compare them";
    findings.push({ level: "warning", about: "tokens", seen: "its locks carry none", todo });
  }
  return findings;
}

async function ownFindings(backend: Backend): Promise<readonly Finding[]> {
  if (isExaminable(backend)) return backend.examine();
  const seen = `${backend.name} cannot be examined any further`;
  return [{ level: "warning", about: "settings", seen, todo: "look at its settings by hand" }];
}
