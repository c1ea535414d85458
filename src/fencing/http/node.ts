/** Fencing for servers of Node: a handler of node:http, and a middleware of Express. */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  fencingHeader,
  gateOf,
  type HttpFenceOptions,
  type Problem,
  problemOf,
  problemType,
} from "../http.ts";
import { answering } from "./answering.ts";

/** A handler of node:http. */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * A handler for `createServer` that lets in what the guard lets in. The turn of a request ends when the handler has
 * answered and what it gave has settled: what it writes has to be written by then. An error of a guard inside the handler
 * is answered as a refusal, too; other errors are passed on.
 */
export function fencedHandler(
  handler: NodeHandler,
  options: HttpFenceOptions<IncomingMessage>,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const gate = gateOf(options);
  return async (request, response) => {
    const { method, headers } = request;
    const work = async (): Promise<void> => {
      const { ended, handOver } = answering(response);
      const handling = handler(request, response);
      if (isThenable(handling)) {
        await handling;
        handOver();
      }
      await ended;
    };
    const asked = { request, method, header: headers[fencingHeader] };
    const problem = await gate(asked, work).catch((error: unknown) => {
      const refusal = response.headersSent ? null : problemOf(error);
      if (refusal === null) throw error;
      return refusal;
    });
    if (problem !== null) answer(response, problem);
  };
}

/**
 * A middleware of Express that lets in what the guard lets in. The turn of a request ends with `res.end()`, however that
 * is called: a route answers each request, and after its writes. It stands behind what reads bodies.
 */
export function expressFence<Request extends IncomingMessage = IncomingMessage>(
  options: HttpFenceOptions<Request>,
): (request: Request, response: ServerResponse, next: (error?: unknown) => void) => void {
  const gate = gateOf(options);
  return (request, response, next) => {
    const { method, headers } = request;
    const work = async (): Promise<void> => {
      const { ended } = answering(response);
      next();
      await ended;
    };
    void gate({ request, method, header: headers[fencingHeader] }, work).then((problem) => {
      if (problem !== null) answer(response, problem);
    }, next);
  };
}

function answer(response: ServerResponse, problem: Problem): void {
  response.statusCode = problem.status;
  response.setHeader("content-type", problemType);
  response.end(JSON.stringify(problem));
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof Reflect.get(Object(value), "then") === "function";
}
