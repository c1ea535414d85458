/** What the report draws, in time and rows: types only. Made by layout.ts, turned into pixels and colours by draw.ts. */
import type { Attempt } from "../trace.ts";

/** Nanoseconds since the first event of the history. */
export type Time = number;

/** A request on its way through waiting and holding. */
export interface Bar {
  readonly attempt: Attempt;
  readonly lane: Lane;
  row: number;
  readonly from: Time;
  /** Where waiting ends and validity begins; null if it was not granted. */
  readonly granted: Time | null;
  readonly until: Time;
  readonly outcome: "granted" | "busy" | "fail" | "info" | "open";
  readonly tip: string;
}

export type MarkShape = "stale" | "refused" | "accepted" | "renewed" | "lost" | "query";

/** Something that has no length. */
export interface Mark {
  readonly shape: MarkShape;
  readonly at: Time;
  readonly lane: Lane;
  /** The bar it belongs to, if any: it is drawn on the same row. */
  readonly bar: Bar | null;
  readonly tip: string;
}

/** All of one process. */
export interface Lane {
  readonly proc: string;
  readonly bars: Bar[];
  rows: number;
}

export interface FaultColumn {
  readonly from: Time;
  readonly until: Time;
  readonly label: string;
  readonly lane: Lane | null;
  readonly tip: string;
}

/** A violation on the timeline; bars are those that overlap where it is about an overlap. */
export interface Flag {
  readonly number: number;
  readonly from: Time;
  readonly until: Time;
  readonly overlap: { readonly from: Time; readonly until: Time; readonly bars: readonly Bar[] } | null;
  readonly points: readonly { readonly at: Time; readonly lane: Lane; readonly bar: Bar | null }[];
  readonly message: string;
}

export interface Layout {
  readonly from: Time;
  readonly until: Time;
  readonly lanes: readonly Lane[];
  readonly marks: readonly Mark[];
  readonly faults: readonly FaultColumn[];
  readonly flags: readonly Flag[];
  /** Lock names in the order in which they appear. */
  readonly locks: readonly string[];
  /** How many operations there are, and how many are drawn. */
  readonly operations: number;
  readonly drawn: number;
}
