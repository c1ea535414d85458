/** Asks on a connection that listens, now and then, whether the server still answers: it may be dead without knowing it. */
import type { Clock, Timer } from "../../core/clock.ts";
import type { Listening } from "./link.ts";

/** Asks each `everyMs`, and calls back when no answer came for as long. Gives the function that ends it. */
export function watchPulse(
  listening: Listening,
  clock: Clock,
  everyMs: number,
  onDead: () => void,
): () => void {
  let timer: Timer;
  let over = false;
  const dead = (): void => {
    if (!over) onDead();
    over = true;
  };
  const rest = (): Timer =>
    clock.after(everyMs, () => {
      timer = clock.after(everyMs, dead);
      listening.ping().then(() => {
        if (over) return;
        timer.cancel();
        timer = rest();
      }, dead);
    });
  timer = rest();
  return () => {
    over = true;
    timer.cancel();
  };
}
