/** One small service, behind a fence, on each framework: a document that is put and got. What is tested is left to the tests. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { type Context, Hono } from "hono";
import {
  expressFence,
  fastifyFence,
  fencedHandler,
  honoFence,
  type MemoryGuard,
  problemOf,
} from "../../src/fencing/index.ts";

/** What the service keeps. */
export interface Shelf {
  value: string | null;
  /** Called by a put before it writes: what it awaits there, others can use to come in between. */
  pause: () => Promise<unknown>;
  /** How many puts were handled. */
  puts: number;
}

/** A shelf whose puts take a turn of the event loop. */
export function freshShelf(): Shelf {
  return { value: null, pause: () => turn(), puts: 0 };
}

/** A running service. */
export interface Service {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a service whose document is guarded. */
export type Start = (shelf: Shelf, guard: MemoryGuard) => Promise<Service>;

async function put(shelf: Shelf, value: string): Promise<void> {
  await shelf.pause();
  shelf.value = value;
  shelf.puts += 1;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString();
}

async function listening(server: Server): Promise<Service> {
  await new Promise<void>((resolve) => {
    if (server.listening) resolve();
    else server.once("listening", resolve);
  });
  const address: AddressInfo | string | null = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/doc`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const resource = "doc";

/** The service on each framework. */
export const frameworks: Readonly<Record<"node:http" | "express" | "fastify" | "hono", Start>> = {
  "node:http": (shelf, guard) => {
    const handler = fencedHandler(
      async (request, response) => {
        if (request.method === "PUT") await put(shelf, await textOf(request));
        response.end(shelf.value ?? "");
      },
      { resource, guard },
    );
    return listening(
      createServer((request, response) => void handler(request, response)).listen(0, "127.0.0.1"),
    );
  },

  express: (shelf, guard) => {
    const app = express();
    app.use(express.text({ type: "*/*" }));
    const fence = expressFence<express.Request>({ resource: ({ path }) => path.slice(1), guard });
    app.put("/doc", fence, (request, response) =>
      put(shelf, String(request.body)).then(() => void response.send("")),
    );
    app.get("/doc", fence, (_request, response) => {
      response.send(shelf.value ?? "");
    });
    app.use(refuse);
    return listening(app.listen(0, "127.0.0.1"));
  },

  fastify: async (shelf, guard) => {
    const app = Fastify();
    app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    const preHandler = fastifyFence({ resource, guard });
    app.put("/doc", { preHandler }, (request) => put(shelf, String(request.body)).then(() => ""));
    app.get("/doc", { preHandler }, async () => shelf.value ?? "");
    await app.listen({ port: 0, host: "127.0.0.1" });
    return listening(app.server);
  },

  hono: (shelf, guard) => {
    const app = new Hono();
    app.use("/doc", honoFence({ resource: (context: Context) => context.req.path.slice(1), guard }));
    app.put("/doc", async (context) => {
      await put(shelf, await context.req.text());
      return context.text("");
    });
    app.get("/doc", (context) => context.text(shelf.value ?? ""));
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    if (!("closeAllConnections" in server)) throw new Error("this server speaks no HTTP/1");
    return listening(server);
  },
};

/** How a route of Express that asks a guard itself answers its refusals. */
function refuse(
  error: unknown,
  _request: express.Request,
  response: express.Response,
  next: express.NextFunction,
): void {
  const problem = problemOf(error);
  if (problem === null) return next(error);
  response.status(problem.status).type("application/problem+json").send(JSON.stringify(problem));
}
