/** All backends that are broken on purpose: test/contract/broken.test.ts shows which case catches each. */
import type { Broken } from "./broken.ts";
import { brokenEntries } from "./entries.ts";
import { brokenLives } from "./lives.ts";
import { brokenNaming } from "./naming.ts";
import { brokenOrder } from "./order.ts";
import { brokenWatching } from "./watching.ts";

export { type Broken, brokenBy, sound } from "./broken.ts";

/** Every broken backend. */
export const brokenBackends: readonly Broken[] = [
  ...brokenOrder,
  ...brokenEntries,
  ...brokenLives,
  ...brokenWatching,
  ...brokenNaming,
];
