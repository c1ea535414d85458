/** The types of stepped-clock.mjs. */

export function steppedClock(): Promise<{
  readonly env: NodeJS.ProcessEnv;
  step(ms: number): Promise<void>;
  remove(): Promise<void>;
}>;
