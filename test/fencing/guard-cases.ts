/** Registers the table of cases for one guard. */
import { describe, expect, it } from "vitest";
import { cases, type Subject } from "./cases.ts";

/** A thousand meetings are thousands of requests: seconds on a quiet machine, many more on a busy one. */
const longestMs = 120_000;

/**
 * Runs every case on a fresh resource. A guard that keeps nothing says so. Two writers meet 1000 times, or less often where
 * the same guard is reached by another way.
 */
export function guardCases(
  name: string,
  open: () => Promise<Subject>,
  keeps: boolean,
  meetings: number = 1_000,
): void {
  describe(`the cases of every guard on ${name}`, () => {
    it.each(cases.filter(({ needsRestart }) => keeps || needsRestart !== true))(
      "$name",
      async ({ run }) => {
        const subject = await open();
        expect(subject.restart !== null).toBe(keeps);
        await run(subject, open, meetings);
      },
      longestMs,
    );
  });
}
