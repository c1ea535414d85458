/**
 * M4: no acknowledged write is lost. Every value whose write was answered ok is in what the resource gives at the end;
 * a write that failed or whose outcome is unknown may be there or not.
 */
import type { Call } from "../trace.ts";
import { quote } from "../words.ts";
import type { Check } from "./check.ts";

/** Compares, per resource, the acknowledged writes with the last read. */
export const checkUpdates: Check = (trace, findings) => {
  const finals = new Map<string, Call>();
  for (const read of trace.reads) if (read.end?.type === "ok") finals.set(resourceOf(read), read);
  const values = new Map<string, ReadonlySet<string>>();
  const unread = new Set<string>();
  let looked = 0;
  for (const write of trace.writes) {
    const { value } = write.invoke;
    if (write.end?.type !== "ok" || value === undefined) continue;
    looked += 1;
    const resource = resourceOf(write);
    const final = finals.get(resource);
    if (final === undefined || final.invoke.i < write.end.i) {
      unread.add(resource);
      continue;
    }
    let found = values.get(resource);
    if (found === undefined) values.set(resource, (found = new Set(final.end?.values)));
    if (found.has(value)) continue;
    findings.violate(
      `The write of ${quote(value)} to ${quote(resource)} by ${quote(write.invoke.proc)} was acknowledged, but the final read does not have it.`,
      [write.invoke, write.end, final.end],
    );
  }
  for (const resource of unread) {
    findings.doubt(`M4: ${quote(resource)} was not read after its last acknowledged write.`);
  }
  return looked;
};

function resourceOf({ invoke }: Call): string {
  return invoke.resource ?? invoke.lock ?? "";
}
