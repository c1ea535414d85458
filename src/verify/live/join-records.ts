/** One history of what all processes of a run have recorded. */
import { type HistoryEvent, mergeHistories, type NewEvent } from "../history.ts";
import type { Fleet, LiveResource } from "./fleet.ts";
import { readRecorded } from "./history-file.ts";

/** Joins the records of clients, resources and the parent. A kill comes after the last thing that its victim recorded. */
export async function joinRecords(
  fleet: Fleet,
  resources: readonly LiveResource[],
  own: readonly HistoryEvent[],
): Promise<readonly HistoryEvent[]> {
  // A client that was killed before it had connected has recorded nothing.
  const parts = await Promise.all(fleet.all.map(({ file }) => readRecorded(file).catch(nothingThere)));
  const kills = fleet.all.flatMap(({ proc, killedAt }, index) => {
    if (killedAt === null) return [];
    const last = parts[index]?.at(-1)?.t ?? 0n;
    const t = last >= killedAt ? last + 1n : killedAt;
    // A process may have been several clients.
    const dead = new Set([proc, ...(parts[index] ?? []).map((event) => event.proc)]);
    return [...dead].map((target) => {
      const event: NewEvent = { proc: "nemesis", f: "fault", type: "info", fault: "kill", target };
      return { i: 0, t, ...event };
    });
  });
  const others = await Promise.all(resources.map(({ file }) => readRecorded(file)));
  return mergeHistories(...parts, ...others, own, kills);
}

function nothingThere(error: unknown): HistoryEvent[] {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
  throw error;
}
