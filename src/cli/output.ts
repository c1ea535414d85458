/** Where the CLI writes: data to stdout, messages to stderr, as text for people or as one JSON object per line. */
import { cut, printable } from "./human.ts";
import { type Message, message, type MessageId, type Values } from "./messages.ts";

/** The part of a stream that is used; a terminal also has a size. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** Resolves when all that was written has arrived; absent where that is so at once. */
  written?(): Promise<void>;
}

/** How one call writes. */
export interface OutputOptions {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
  readonly quiet: boolean;
  /** Takes secrets out of any text that is about to be shown. */
  readonly clean: (text: string) => string;
}

/** What colours stand for. */
export type Tone = "strong" | "faint" | "good" | "careful" | "bad";

const codes: Readonly<Record<Tone, number>> = { strong: 1, faint: 2, good: 32, careful: 33, bad: 31 };

/** The output of one call. */
export class Output {
  readonly json: boolean;
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly #options: OutputOptions;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.json = options.json;
    this.stdout = options.stdout;
    this.stderr = options.stderr;
  }

  /** How wide the terminal is; Infinity where there is none, so that nothing is cut. */
  get width(): number {
    return this.stdout.isTTY === true ? (this.stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
  }

  /** Writes a line of data for people. */
  line(text = ""): void {
    this.stdout.write(`${this.#options.clean(text)}\n`);
  }

  /** Writes one JSON object as a line of data. */
  record(value: object): void {
    this.stdout.write(`${this.#options.clean(toJson(value))}\n`);
  }

  /** Says something that does not end the CLI. */
  note(id: MessageId, values: Values): void {
    if (!this.#options.quiet) this.show(message(id, values));
  }

  /** Says an event for machines: only with --json, and on stderr, since stdout belongs to the command that runs. */
  event(value: object): void {
    if (this.json) this.stderr.write(`${this.#options.clean(toJson(value))}\n`);
  }

  /** Resolves when all that was written has arrived. */
  async written(): Promise<void> {
    await Promise.all([this.stdout.written?.(), this.stderr.written?.()]);
  }

  /** Shows how far something is: a line that is written over on a terminal, nothing elsewhere. Null takes it away. */
  progress(text: string | null): void {
    if (this.stderr.isTTY !== true || this.#options.quiet || this.json) return;
    const shown = text === null ? "" : cut(this.#options.clean(text), (this.stderr.columns || 80) - 1);
    this.stderr.write(`\r\u001b[K${shown}`);
  }

  /** Shows a message on stderr. */
  show(shown: Message): void {
    if (this.json) return this.event({ message: shown.id, ...withoutId(shown) });
    const lines = [...shown.text.split("\n"), ...(shown.hint === undefined ? [] : [shown.hint])];
    const text = this.#options.clean(lines.map(printable).join("\n  "));
    this.stderr.write(`holdfast: ${text}\n`);
  }

  /** A text in colour, where stdout shows colours. */
  paint(tone: Tone, text: string): string {
    const { env } = this.#options;
    const plain = (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb" || this.stdout.isTTY !== true;
    return plain || text === "" ? text : `\u001b[${codes[tone]}m${text}\u001b[0m`;
  }
}

function withoutId({ exitCode, text, hint }: Message): object {
  return { exitCode, text, hint };
}

/** JSON in which a bigint is decimal text: a JSON number could not hold a token. */
export function toJson(value: object): string {
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? String(part) : part));
}
