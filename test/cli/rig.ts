/** What tests of the CLI share: an output that remembers, and queues in memory to look at. */
import { openBackend } from "../../src/connect.ts";
import { type Backend, type Browsable, isBrowsable } from "../../src/core/backend.ts";
import { Output, type OutputOptions } from "../../src/cli/output.ts";

/** A stream that remembers what was written. */
export class Remembered {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows = 10;

  constructor(isTTY = false, columns = 80) {
    this.isTTY = isTTY;
    this.columns = columns;
  }

  write(text: string): void {
    this.text += text;
  }

  get lines(): readonly string[] {
    return this.text.split("\n").slice(0, -1);
  }
}

/** An output whose streams remember. */
export function remembering(options: Partial<OutputOptions> & { tty?: boolean; columns?: number } = {}): {
  output: Output;
  stdout: Remembered;
  stderr: Remembered;
} {
  const stdout = new Remembered(options.tty, options.columns);
  const stderr = new Remembered(options.tty, options.columns);
  const defaults = { env: {}, json: false, quiet: false, clean: (text: string) => text };
  return { output: new Output({ ...defaults, ...options, stdout, stderr }), stdout, stderr };
}

/** A store in memory that can be listed. */
export async function memory(name: string): Promise<Backend & Browsable> {
  const backend = await openBackend(`memory:${name}`);
  if (!isBrowsable(backend)) throw new Error("memory can list its queues");
  return backend;
}
