/** A fresh memory store on a manual clock for the contract: how the suite itself is tested, and an example of a ContractStore. */
import { randomUUID } from "node:crypto";
import { memoryBackend, type MemoryBackend } from "../backends/memory/index.ts";
import { ManualClock } from "./manual-clock.ts";
import type { ContractStore } from "./store.ts";

/** A store whose time moves only when a case lets it pass. */
export function manualMemoryStore(): ContractStore & { readonly clock: ManualClock } {
  const clock = new ManualClock();
  const store = randomUUID();
  const clients: MemoryBackend[] = [];
  let elapsed: Promise<void> = Promise.resolve();
  return {
    clock,
    client: () => {
      const client = memoryBackend({ store, clock });
      clients.push(client);
      return client;
    },
    // One after the other: two advances at once would each end at its own moment.
    elapse: (ms) => {
      elapsed = elapsed.then(() => clock.advance(ms));
      return elapsed;
    },
    litter: async () => {
      const answers = await Promise.allSettled(clients.map((client) => client.queues("")));
      const inUse = answers.some(({ status }) => status === "fulfilled");
      return inUse || clock.timers === 0 ? [] : [`${clock.timers} timers`];
    },
    close: async () => {},
  };
}
