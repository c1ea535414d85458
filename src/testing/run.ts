/** Runs one case on a fresh store, within a bound of real time; leaves reporting to the test runner. */
import assert from "node:assert/strict";
import { type ContractCase, type Need, unmetNeed } from "./case.ts";
import { Stage } from "./stage.ts";
import type { ContractStore, Pace } from "./store.ts";

/** Rejects if the case fails; gives the need that the store does not meet if the case does not apply to it. */
export async function runCase(
  contractCase: ContractCase,
  open: () => Promise<ContractStore> | ContractStore,
  pace: Pace = {},
): Promise<Need | null> {
  const store = await open();
  const stage = new Stage(store, pace);
  try {
    const unmet = unmetNeed(contractCase, await stage.client());
    if (unmet === null) await inTime(contractCase.run(stage), stage.pace.limitMs);
    return unmet;
  } finally {
    await inTime(stage.closeAll(), stage.pace.limitMs);
    await store.close();
  }
}

/** The timer also keeps the process alive while only locks are waited for. */
function inTime(work: Promise<void>, limitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = (): void =>
      reject(new assert.AssertionError({ message: `the case has not ended within ${limitMs} ms` }));
    const timer = setTimeout(late, limitMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
