/** The memory backend against the contract: by the manual clock, and by the clock of the system. */
import { randomUUID } from "node:crypto";
import { describe, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { backendContract, manualMemoryStore } from "../../src/testing/index.ts";

const runner = { describe, it };

backendContract({ name: "memory, manual clock", open: manualMemoryStore, runner });

backendContract({
  name: "memory, system clock",
  open: () => {
    const store = randomUUID();
    return { client: () => memoryBackend({ store }), close: async () => {} };
  },
  runner,
  shortMs: 100,
  lagMs: 50,
  interleavings: 500,
});
