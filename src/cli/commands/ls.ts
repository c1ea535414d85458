/** `holdfast ls`: who holds what. */
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Output } from "../output.ts";
import { entryRecord, listColumns, listRows, type QueueView, viewAll } from "../picture.ts";
import { browsable, withStore } from "../store.ts";
import { tableLines } from "../table.ts";

export const ls: Command = {
  name: "ls",
  summary: "List who holds which lock, since when, and how many wait",
  usage: "[prefix] [options]",
  takes: { names: ["a prefix"], least: 0 },
  about: [
    "One line per holder. SINCE is how long it has been in the queue, EXPIRES how long it lives without a renewal. The mode of a semaphore says how many permits are taken, of how many.",
    "With --json also those who wait, one object per entry.",
  ],
  options: {},
  examples: [
    ["holdfast ls", "all locks"],
    ["holdfast ls order:", "those whose names start with order:"],
    [
      "holdfast ls --json | jq -r 'select(.state == \"waiting\") | .name' | sort | uniq -c",
      "who waits for what",
    ],
  ],

  async run(call) {
    const views = await withStore(call, (backend) =>
      viewAll(browsable(call, backend), call.positionals[0] ?? ""),
    );
    if (call.output.json) {
      for (const view of views) {
        for (const entry of [...view.held, ...view.waiting]) call.output.record(entryRecord(view, entry));
      }
    } else {
      for (const line of listing(views, call.output)) call.output.line(line);
    }
    return exitCodes.ok;
  },
};

/** The listing as lines, its head first; nothing but a remark if there is nothing. */
export function listing(views: readonly QueueView[], output: Output): readonly string[] {
  if (views.length === 0) return [output.paint("faint", "nothing is locked")];
  const [head = "", ...rows] = tableLines(listColumns, views.flatMap(listRows), output.width);
  return [output.paint("strong", head), ...rows];
}
