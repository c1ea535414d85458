/** Fencing for Fastify: a hook for `preHandler`, where bodies have been read. Typed by what it uses of Fastify. */
import { fencingHeader, gateOf, type HttpFenceOptions, problemType } from "../http.ts";
import { answering } from "./answering.ts";

/** What is used of a request of Fastify. */
export interface FastifyRequestLike {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What is used of a reply of Fastify. */
export interface FastifyReplyLike {
  /** The response of Node. */
  readonly raw: object;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: string): unknown;
}

/**
 * A hook for `preHandler` that lets in what the guard lets in. The turn of a request ends when Fastify ends the response:
 * a handler's writes have to be written when it answers.
 */
export function fastifyFence<Request extends FastifyRequestLike = FastifyRequestLike>(
  options: HttpFenceOptions<Request>,
): (request: Request, reply: FastifyReplyLike) => Promise<unknown> {
  const gate = gateOf(options);
  return (request, reply) =>
    new Promise((resolve, reject) => {
      const { method, headers } = request;
      const work = async (): Promise<void> => {
        const { ended, handOver } = answering(reply.raw);
        // A stream that is sent to a client that has gone is dropped without an end.
        const send = reply.send.bind(reply);
        reply.send = (body) => {
          handOver();
          return send(body);
        };
        resolve(undefined);
        await ended;
      };
      void gate({ request, method, header: headers[fencingHeader] }, work).then((problem) => {
        if (problem === null) return;
        reply.code(problem.status);
        reply.header("content-type", problemType);
        reply.send(JSON.stringify(problem));
        // What Fastify takes for: it has been answered.
        resolve(reply);
      }, reject);
    });
}
