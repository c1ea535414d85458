/** Histories of single processes on disk: written event by event, so that they outlive a SIGKILL, and joined at the end. */
import { openSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { HistoryEvent, NewEvent } from "../history.ts";
import { formatEvent, parseHistory } from "../history-text.ts";

/** Where events go: a History, or a file. */
export interface Recording {
  /** Adds an event that happens now, or at a moment taken a little earlier. */
  record(event: NewEvent, t?: bigint): HistoryEvent;
}

/** Appends each event to a file before anything else happens, and keeps none in memory. */
export function recordTo(path: string): Recording {
  const file = openSync(path, "a");
  let position = 0;
  return {
    record(event, t = process.hrtime.bigint()) {
      const recorded: HistoryEvent = { i: position++, t, ...event };
      writeSync(file, `${formatEvent(recorded)}\n`);
      return recorded;
    },
  };
}

/** What a process recorded. A line that a kill has cut off counts as never written. */
export async function readRecorded(path: string): Promise<HistoryEvent[]> {
  const text = await readFile(path, "utf8");
  return parseHistory(text.slice(0, text.lastIndexOf("\n") + 1));
}
