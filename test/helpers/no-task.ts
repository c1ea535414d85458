/** What clients of `holdfast verify` are told where nobody starts any. */
import type { CommonTask } from "../../src/verify/live/fleet.ts";

export const noTask: CommonTask = {
  fencedPort: 0,
  unfencedPort: 0,
  prefix: "",
  ttlMs: 1_000,
  calmMs: 0,
  lanes: 1,
  seed: 1,
  ownStore: true,
};
