/** A promise that somebody else opens. */

/** A closed gate: whoever waits goes on when it is opened, and opening it twice does nothing. */
export class Gate {
  readonly opened: Promise<void>;
  #open: (() => void) | null = null;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open?.();
  }
}
