/** `holdfast release --force`: evicts exactly the entries that it has shown, and says whom. */
import { createInterface } from "node:readline/promises";
import type { Backend, Entry } from "../../core/backend.ts";
import { evictionOrder } from "../../core/grant.ts";
import { checkName, semaphoreQueue } from "../../core/names.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { printable } from "../human.ts";
import { Failure } from "../messages.ts";
import { entryRecord, holderOf, type QueueView, viewQueue } from "../picture.ts";
import { quote } from "../run/held.ts";
import { withStore } from "../store.ts";
import { entryLines } from "./show.ts";

export const release: Command = {
  name: "release",
  summary: "Take a lock away from whoever holds it",
  usage: "<name> --force [options]",
  takes: { names: ["the name of a lock"], least: 1 },
  about: [
    "Evicts the holders that it shows, and nobody who came later. An evicted holder learns it at its next renewal at the latest; until then it may go on, so the next holder and the old one may act at once: the resource can tell them apart by their tokens.",
    "Asks first on a terminal; elsewhere it needs --yes.",
  ],
  options: {
    force: { help: "say that this is meant: the holder does not expect it" },
    yes: { short: "y", help: "do not ask" },
    token: { value: "NUMBER", help: "evict only the entry with this token, even if it only waits" },
    semaphore: { help: "the semaphore of that name, not the lock" },
  },
  examples: [
    ["holdfast release order:42 --force", "show who holds it, ask, evict"],
    ["holdfast release order:42 --force --yes --token 1794793709487005", "evict that one and nobody else"],
  ],

  async run(call) {
    const { given, positionals, output } = call;
    const [name = ""] = positionals;
    if (!given.flag("force")) throw new Failure("force-missing", { name });
    if (!given.flag("yes") && (!call.interactive || output.json)) throw new Failure("yes-missing");
    const token = tokenOf(call);
    return withStore(call, async (backend) => {
      const view = await viewQueue(backend, queueOf(call));
      const chosen = await choose(call, backend, view, token);
      if (!given.flag("yes") && !(await agreed(call, view, chosen))) throw new Failure("not-evicted");
      return evict(call, backend, view, chosen);
    });
  },
};

function queueOf({ given, positionals }: Call): string {
  const name = checkName(positionals[0]);
  return given.flag("semaphore") ? semaphoreQueue(name) : name;
}

function tokenOf({ given }: Call): bigint | undefined {
  const text = given.value("token");
  if (text === undefined) return undefined;
  if (/^\d{1,30}$/.test(text)) return BigInt(text);
  throw new Failure("value-refused", {
    reason: `--token is ${quote(text)}: give a whole number`,
    command: "release",
  });
}

/** The entries that are meant: all holders, or the one with the token. */
async function choose(
  call: Call,
  backend: Backend,
  view: QueueView,
  token: bigint | undefined,
): Promise<readonly Entry[]> {
  const what = `${view.kind} ${quote(view.name)}`;
  if (token !== undefined) {
    const found = [...view.held, ...view.waiting].filter(({ seq }) => seq === token);
    if (found.length > 0) return found;
    throw new Failure("token-unknown", { what, token: String(token), name: view.name });
  }
  if (view.held.length > 0) return evictionOrder(view.held);
  if (view.kind === "lock" && !call.given.flag("semaphore")) {
    const other = await viewQueue(backend, semaphoreQueue(view.name));
    if (other.held.length > 0) throw new Failure("semaphore-meant", { name: quote(view.name) });
  }
  throw new Failure("nobody-holds", { what });
}

/** Shows whom it is about, and asks. Anything but a clear yes is a no. */
async function agreed({ output }: Call, view: QueueView, chosen: readonly Entry[]): Promise<boolean> {
  for (const line of entryLines(view, chosen, output)) output.line(line);
  const whom = chosen.length === 1 ? "it" : `these ${chosen.length}`;
  await output.written();
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C and the end of the input are a no, too.
  const closed = new Promise<string>((resolve) => asking.once("close", () => resolve("")));
  const answer = await Promise.race([asking.question(`Evict ${whom}? [y/N] `), closed]);
  asking.close();
  return /^\s*y(es)?\s*$/i.test(answer);
}

async function evict(
  call: Call,
  backend: Backend,
  view: QueueView,
  chosen: readonly Entry[],
): Promise<number> {
  const { output } = call;
  let evicted = 0;
  for (const entry of chosen) {
    const done = await backend.remove(view.queue, entry.id, true, entry.seq);
    if (done) evicted += 1;
    if (output.json) output.record({ evicted: done, ...entryRecord(view, entry) });
    else {
      const what = `${holderOf(entry)} with token ${entry.seq}`;
      const from = `${view.kind} ${printable(quote(view.name))}`;
      output.line(done ? `evicted ${what} from ${from}` : `${what} had left ${from} by itself`);
    }
  }
  if (evicted === 0) throw new Failure("not-evicted");
  return exitCodes.ok;
}
