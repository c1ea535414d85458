/** `holdfast migrate`: creates what a store needs before its first lock, or brings it up to date. */
import { isMigratable } from "../../core/backend.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { withStore } from "../store.ts";

export const migrate: Command = {
  name: "migrate",
  summary: "Create the tables of the store, or bring them up to date",
  usage: "[options]",
  takes: { names: [], least: 0 },
  about: [
    "For stores in a database whose clients may not create anything: run it once as a user who may. Any number may run it at once, and again: what is there already stays.",
  ],
  options: {},
  examples: [["holdfast migrate --store postgres://admin@db/shop", "create what is missing"]],

  async run(call) {
    const versions = await withStore(call, async (backend) =>
      isMigratable(backend) ? backend.migrate() : null,
    );
    if (call.output.json) call.output.record({ versions: versions ?? [] });
    else call.output.line(said(versions));
    return exitCodes.ok;
  },
};

function said(versions: readonly number[] | null): string {
  if (versions === null) return "this store needs nothing before its first lock";
  return versions.length === 0 ? "everything is up to date" : `applied: version ${versions.join(", ")}`;
}
