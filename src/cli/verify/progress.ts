/** How far a run of `holdfast verify` is, in one line. */
import type { Progress } from "../../verify/live/verified.ts";
import { human } from "../human.ts";

const words: Readonly<Record<Progress["phase"], string>> = {
  starting: "starting clients",
  calm: "without faults",
  faults: "breaking things",
  healing: "healed, waiting for all to end",
  checking: "checking what was recorded",
};

/** The line. */
export function progressText({ phase, elapsedMs, totalMs, grants, faults }: Progress): string {
  const done = Math.min(1, phase === "starting" ? 0 : elapsedMs / totalMs);
  const width = 20;
  const bar = "█".repeat(Math.round(done * width)).padEnd(width, "░");
  return `${bar} ${human(Math.min(elapsedMs, totalMs))} of ${human(totalMs)}  ${counted(grants, "grant")}, ${counted(faults, "fault")}  ${words[phase]}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
