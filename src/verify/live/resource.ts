/**
 * What the locks protect in a run with real processes: for each lock a log to which holders add at the place that they
 * have read. With the fence it refuses a token below the highest that it has seen; without, it takes everything. It runs
 * in a process of its own (resource-process.ts), and its own record is the truth about writes.
 */
import type { Recording } from "./history-file.ts";

/** A resource as a client uses it; undefined stands for "no answer came". */
export interface Resource {
  /** Where the log ends; null if the token is stale. A read with a token counts as a use of it. */
  read(name: string, token: bigint): Promise<number | null | undefined>;
  /** Writes at a place; what was there and behind it is gone. False if the token is stale. */
  write(write: Write): Promise<boolean | undefined>;
}

/** One write. */
export interface Write {
  readonly name: string;
  readonly token: bigint;
  readonly attempt: string;
  readonly at: number;
  readonly value: string;
}

/** What a resource has seen. */
export interface ResourceCounts {
  readonly accepted: number;
  readonly refused: number;
  /** Acknowledged values that a later write has undone. */
  readonly undone: number;
}

interface Log {
  values: string[];
  newest: bigint;
}

/** Fenced or unfenced logs, by name. */
export class ResourceLogs {
  readonly proc: string;
  readonly #fenced: boolean;
  readonly #history: Recording;
  readonly #logs = new Map<string, Log>();
  #accepted = 0;
  #refused = 0;
  #undone = 0;

  constructor(history: Recording, fenced: boolean) {
    this.#history = history;
    this.#fenced = fenced;
    this.proc = fenced ? "fenced" : "unfenced";
  }

  get names(): readonly string[] {
    return [...this.#logs.keys()];
  }

  get counts(): ResourceCounts {
    return { accepted: this.#accepted, refused: this.#refused, undone: this.#undone };
  }

  values(name: string): readonly string[] {
    return this.#log(name).values;
  }

  read(name: string, token: bigint): number | null {
    const log = this.#log(name);
    return this.#admits(log, token) ? log.values.length : null;
  }

  write({ name, token, attempt, at, value }: Write): boolean {
    const log = this.#log(name);
    const accepted = this.#admits(log, token);
    // Without the fence a token is nobody's claim: then it is known by its attempt only.
    const about = { resource: this.#label(name), attempt, value, ...(this.#fenced ? { token } : {}) };
    this.#history.record({ proc: this.proc, f: "guard", type: accepted ? "ok" : "fail", ...about });
    if (!accepted) {
      this.#refused += 1;
      return false;
    }
    this.#accepted += 1;
    this.#undone += Math.max(0, log.values.length - at);
    log.values.length = Math.min(log.values.length, at);
    log.values.push(value);
    return true;
  }

  /** Records what each log has in the end. */
  recordAll(): void {
    for (const name of this.names) {
      const about = { proc: this.proc, f: "read", resource: this.#label(name) } as const;
      this.#history.record({ ...about, type: "invoke" });
      this.#history.record({ ...about, type: "ok", values: [...this.values(name)] });
    }
  }

  #label(name: string): string {
    return this.#fenced ? name : `${name}, unfenced`;
  }

  /** The one rule: a token below the highest seen is refused. */
  #admits(log: Log, token: bigint): boolean {
    if (!this.#fenced) return true;
    if (token < log.newest) return false;
    log.newest = token;
    return true;
  }

  #log(name: string): Log {
    let log = this.#logs.get(name);
    if (log === undefined) this.#logs.set(name, (log = { values: [], newest: -1n }));
    return log;
  }
}
