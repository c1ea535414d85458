/** A resource in another process, as clients and the parent use it. An answer that does not come in time is no answer. */
import { connect, type Socket } from "node:net";
import { onLines, sendLine } from "./lines.ts";
import type { Resource, ResourceCounts, Write } from "./resource.ts";

/** What a resource is asked. */
export type ResourceRequest = { readonly call: number } & (
  | { readonly ask: "read"; readonly name: string; readonly token: bigint }
  | { readonly ask: "write"; readonly write: Write }
  | { readonly ask: "end" }
);

interface Reply {
  readonly call: number;
  readonly value: unknown;
}

/** How long an answer may take: the resource is on the same machine, and nobody breaks the way to it. */
const answerMs = 5_000;

/** The same for what it has in the end, without which there is no verdict: a busy machine may take longer. */
const endMs = 60_000;

/** A connection to a resource. */
export class RemoteResource implements Resource {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (value: unknown) => void>();
  #calls = 0;

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1").setNoDelay(true);
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      for (const settle of this.#waiting.values()) settle(undefined);
    });
    onLines(this.#socket, (reply) => {
      if (isReply(reply)) this.#waiting.get(reply.call)?.(reply.value);
    });
  }

  async read(name: string, token: bigint): Promise<number | null | undefined> {
    const value = await this.#ask({ ask: "read", name, token });
    return typeof value === "number" || value === null ? value : undefined;
  }

  async write(write: Write): Promise<boolean | undefined> {
    const value = await this.#ask({ ask: "write", write });
    return typeof value === "boolean" ? value : undefined;
  }

  /** Lets it record what it has in the end, and gives what it has seen. */
  async end(): Promise<ResourceCounts> {
    const value = await this.#ask({ ask: "end" }, endMs);
    if (isCounts(value)) return value;
    throw new Error(`a resource has ended, or did not say within ${endMs / 1_000} s what it has in the end`);
  }

  close(): void {
    this.#socket.destroy();
  }

  #ask(what: DistributiveOmit<ResourceRequest, "call">, withinMs = answerMs): Promise<unknown> {
    const call = ++this.#calls;
    return new Promise((resolve) => {
      const settle = (value: unknown): void => {
        clearTimeout(late);
        this.#waiting.delete(call);
        resolve(value);
      };
      const late = setTimeout(settle, withinMs, undefined);
      this.#waiting.set(call, settle);
      if (this.#socket.destroyed) settle(undefined);
      else sendLine(this.#socket, { call, ...what });
    });
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

function isReply(message: unknown): message is Reply {
  return typeof message === "object" && message !== null && "call" in message;
}

/** Whether a message asks a resource for something. */
export function isRequest(message: unknown): message is ResourceRequest {
  return typeof message === "object" && message !== null && "ask" in message;
}

function isCounts(value: unknown): value is ResourceCounts {
  return typeof value === "object" && value !== null && "accepted" in value && "undone" in value;
}
