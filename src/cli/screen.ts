/** A picture on a terminal that is drawn again and again, on a screen of its own, so that what was there comes back. */
import { cut } from "./human.ts";
import type { Sink } from "./output.ts";

const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";
const home = "\u001b[H";
const clearLine = "\u001b[K";
const clearBelow = "\u001b[J";

/** The screen of a terminal. */
export class Screen {
  readonly #terminal: Sink;

  constructor(terminal: Sink) {
    this.#terminal = terminal;
    terminal.write(enter);
  }

  /** Draws these lines; what does not fit is counted. */
  draw(lines: readonly string[]): void {
    const { rows = 24, columns = 80 } = this.#terminal;
    const hidden = lines.length - rows;
    const shown =
      hidden <= 0 ? lines : [...lines.slice(0, rows - 1), cut(`… and ${hidden + 1} more lines`, columns)];
    // No line feed after the last: it would scroll.
    this.#terminal.write(home + shown.map((line) => line + clearLine).join("\n") + clearBelow);
  }

  /** Gives the terminal back as it was. */
  end(): void {
    this.#terminal.write(leave);
  }
}
