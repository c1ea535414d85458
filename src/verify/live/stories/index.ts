/** All stories, as the tables that users draw from: those that each tells alone, and those for two. */
import type { Traits } from "../../../core/backend.ts";
import type { Dice } from "../../simulate/dice.ts";
import { handovers } from "./handover.ts";
import { lastings } from "./lasting.ts";
import { leavings } from "./leaving.ts";
import { calm, mixed } from "./mixed.ts";
import { namings } from "./naming.ts";
import type { Duet, Story } from "./story.ts";
import { thefts } from "./theft.ts";
import { tools } from "./tools.ts";

export { calm, mixed };

/** The stories for two. */
export const duets: readonly Duet[] = [
  ...handovers,
  ...thefts,
  ...leavings,
  ...lastings,
  ...namings,
  ...tools,
];

/** One story of a table, by its share of those that the store can have. */
export function draw(stories: readonly Story[], traits: Traits, dice: Dice): Story | undefined {
  const possible = stories.filter(({ needs }) => needs?.(traits) ?? true);
  let left = dice.fraction() * possible.reduce((sum, { share }) => sum + share, 0);
  return possible.find(({ share }) => (left -= share) < 0) ?? possible[0];
}
