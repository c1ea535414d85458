/** When a response of Node is answered, as far as the turn of its request is concerned. */
import { EventEmitter } from "node:events";

/** A response that is watched. */
export interface Answering {
  /** Resolves when it is answered. */
  readonly ended: Promise<void>;
  /** To be called when the handler has done all that it will but for sending: from then on a client that goes ends it. */
  readonly handOver: () => void;
}

/**
 * Watches a response until somebody has called `end` or `destroy`. That a client has gone says nothing: what the handler has
 * begun may still write. But once the handler has handed over, or pipes a stream, nobody may ever call `end` for that client.
 */
export function answering(response: object): Answering {
  let handedOver = false;
  let gone = Reflect.get(response, "destroyed") === true;
  let resolve = (): void => {};
  const ended = new Promise<void>((done) => {
    resolve = done;
  });
  const handOver = (): void => {
    handedOver = true;
    if (gone) resolve();
  };
  for (const name of ["end", "destroy"]) {
    const original: unknown = Reflect.get(response, name);
    Reflect.set(response, name, (...args: unknown[]): unknown => {
      const result: unknown =
        typeof original === "function" ? Reflect.apply(original, response, args) : response;
      resolve();
      return result;
    });
  }
  if (response instanceof EventEmitter) {
    response.once("pipe", handOver);
    response.once("close", () => {
      gone = true;
      if (handedOver) resolve();
    });
  }
  return { ended, handOver };
}
