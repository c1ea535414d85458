/** Nodes of the Redlock backend whose answers are given by hand, and a backend on them under a manual clock. */
import { RedlockBackend } from "../../src/backends/redlock/backend.ts";
import type { Link } from "../../src/backends/redis/link.ts";
import type { NewEntry } from "../../src/core/backend.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

/** A command that a node was sent, and how to answer it. */
export interface Sent {
  readonly command: string;
  readonly words: readonly string[];
  readonly answer: (reply: unknown) => void;
  readonly fail: (error: Error) => void;
}

/** What the clocks of the nodes say, in milliseconds. */
const nodeMs = 1_794_800_000_000;

/** A node that answers nothing by itself but who it is. */
export class HandNode implements Link {
  readonly library = "ioredis";
  readonly cluster = false;
  readonly inOrder = true;
  isReady: boolean;
  readonly lastError = null;
  readonly sent: Sent[] = [];
  /** How often a script was loaded. */
  loads = 0;
  readonly #upSeconds: number;
  #onReady = (): void => {};

  constructor(upSeconds: number, isReady: boolean) {
    this.#upSeconds = upSeconds;
    this.isReady = isReady;
  }

  /** The connection stands, if it did not. */
  connect(): void {
    this.isReady = true;
    this.#onReady();
  }

  canSend(): boolean {
    return true;
  }
  start(onReady: () => void): void {
    this.#onReady = onReady;
    if (this.isReady) onReady();
  }
  send(command: string, words: readonly string[]): Promise<unknown> {
    if (command === "INFO") {
      const info = [
        "run_id:abc",
        `uptime_in_seconds:${this.#upSeconds}`,
        `server_time_usec:${nodeMs * 1000}`,
      ];
      return Promise.resolve(`${info.join("\r\n")}\r\n`);
    }
    if (command === "SCRIPT") {
      this.loads += 1;
      return Promise.resolve("");
    }
    return new Promise((resolve, reject) => {
      this.sent.push({ command, words, answer: resolve, fail: reject });
    });
  }
  sendToAll(): Promise<readonly unknown[]> {
    return Promise.resolve([]);
  }
  sendTo(): Promise<unknown> {
    return Promise.resolve(null);
  }
  nodeOf(): undefined {
    return undefined;
  }
  listen(): never {
    throw new Error("nobody can listen here");
  }
  seek(): void {}
  reconnect(): void {}
  async close(): Promise<void> {}

  /** The last command that it was sent. */
  last(): Sent {
    const last = this.sent.at(-1);
    if (last === undefined) throw new Error("nothing was sent");
    return last;
  }
}

/** What is asked for. */
export const entry: NewEntry = {
  id: "one",
  owner: { client: "c", host: "h", pid: 1 },
  mode: "write",
  weight: 1,
  ttlMs: 10_000,
};

/** How the nodes begin. */
export interface Setup {
  readonly fencing?: boolean;
  readonly lastUpSeconds?: number;
  readonly lastIsReady?: boolean;
}

/** A backend on so many nodes. Without tokens its attempts are plain SETs. The last node may be new, or not yet connected. */
export async function open(
  count: number,
  { fencing = false, lastUpSeconds = 1_000, lastIsReady = true }: Setup = {},
): Promise<{ backend: RedlockBackend; nodes: HandNode[]; clock: ManualClock }> {
  const nodes = Array.from({ length: count - 1 }, () => new HandNode(1_000, true));
  nodes.push(new HandNode(lastUpSeconds, lastIsReady));
  const places = nodes.map((link, index) => ({ label: `node ${index}`, link }));
  const clock = new ManualClock();
  const settings = {
    prefix: "lock:",
    deadlineMs: 1_000,
    quarantineMs: 60_000,
    fencing,
    health: "warn",
    clock,
  } as const;
  const backend = new RedlockBackend(places, settings);
  await backend.ready();
  return { backend, nodes, clock };
}

/** The token that is proposed: 20 ms more than what the clocks of the nodes say. */
export const proposed: number = (nodeMs + 20) * 1000;

/** An answer of a script, which says what time it is. */
export function said(answer: string): readonly unknown[] {
  return [String(nodeMs * 1000), answer];
}
