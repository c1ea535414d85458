/** `holdfast show`: one name in full, holders and waiters in their order. */
import { checkName } from "../../core/names.ts";
import type { Entry } from "../../core/backend.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { human, printable } from "../human.ts";
import type { Output } from "../output.ts";
import { entryRecord, holderOf, modeOf, type QueueView, viewName } from "../picture.ts";
import { withStore } from "../store.ts";
import { type Column, tableLines } from "../table.ts";

const columns: readonly Column[] = [
  { title: "STATE" },
  { title: "MODE", drop: 3 },
  { title: "WHO", least: 8 },
  { title: "TOKEN", align: "right" },
  { title: "SINCE", align: "right", drop: 4 },
  { title: "EXPIRES", align: "right", drop: 2 },
  { title: "METADATA", least: 8, drop: 1 },
];

export const show: Command = {
  name: "show",
  summary: "Show who holds a lock and who waits for it, in order",
  usage: "<name> [options]",
  takes: { names: ["the name of a lock"], least: 1 },
  about: [
    "A semaphore of the same name is shown, too. A name that nobody holds or wants is free, and that is no error.",
  ],
  options: {},
  examples: [
    ["holdfast show order:42", "who holds it, who waits"],
    ["holdfast show order:42 --json", "the same for machines, one object per entry"],
  ],

  async run(call) {
    const views = await withStore(call, async (backend) => viewName(backend, checkName(call.positionals[0])));
    const { output } = call;
    if (output.json) {
      for (const view of views) for (const entry of allOf(view)) output.record(entryRecord(view, entry));
      return exitCodes.ok;
    }
    if (views.length === 0) output.line(`${printable(call.positionals[0] ?? "")} is free`);
    for (const view of views) for (const line of entryLines(view, allOf(view), output)) output.line(line);
    return exitCodes.ok;
  },
};

function allOf(view: QueueView): readonly Entry[] {
  return [...view.held, ...view.waiting];
}

/** Some entries of a queue in full, under a heading. */
export function entryLines(view: QueueView, entries: readonly Entry[], output: Output): readonly string[] {
  const rows = entries.map((entry) => [
    view.held.includes(entry) ? "holds" : "waits",
    modeOf(entry),
    holderOf(entry),
    String(entry.seq),
    human(entry.ageMs),
    human(entry.expiresInMs),
    printable(entry.metadata ?? ""),
  ]);
  const lines = tableLines(columns, rows, output.width - 2).map((line) => `  ${line}`);
  return [`${view.kind} ${output.paint("strong", printable(view.name))}`, ...lines];
}
