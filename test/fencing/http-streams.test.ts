/** Answers that are streams, on each framework of Node: a client that goes in the middle of one keeps nobody from their turn. */
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { writeFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import express from "express";
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { expect, it, onTestFinished } from "vitest";
import { expressFence, fastifyFence, fencedHandler } from "../../src/fencing/index.ts";

const options = { resource: "doc", wait: "15s" } as const;

/** Text that has no end. */
function endless(): Readable {
  return Readable.from(endlessly());
}

async function* endlessly(): AsyncGenerator<string> {
  for (;;) {
    yield "and so on ".repeat(100);
    await sleep(1);
  }
}

const isFirst = (request: IncomingMessage): boolean => request.headers["fencing-token"] === "7";

/** How a handler of Node sends the first answer; all others are short. */
type Send = (response: ServerResponse) => unknown;

const nodeServer = (send: Send): Server => {
  const handler = fencedHandler((request, response) => {
    if (isFirst(request)) return send(response);
    response.end("short");
    return undefined;
  }, options);
  return createServer((request, response) => void handler(request, response));
};

const expressServer = (send: (response: express.Response) => unknown): Server => {
  const app = express();
  app.get("/", expressFence(options), (request, response) => {
    if (isFirst(request)) send(response);
    else response.end("short");
  });
  return createServer(app);
};

const fastifyServer = async (stream: () => unknown): Promise<Server> => {
  const app = Fastify();
  app.get("/", { preHandler: fastifyFence<FastifyRequest>(options) }, (request, reply: FastifyReply) =>
    reply.send(isFirst(request.raw) ? stream() : "short"),
  );
  await app.ready();
  return app.server;
};

async function bigFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-stream-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "big.txt");
  await writeFile(path, Buffer.alloc(16 * 2 ** 20, "x"));
  return path;
}

const servers: Readonly<Record<string, () => Server | Promise<Server>>> = {
  "a pipe of node:http": () => nodeServer((response) => void endless().pipe(response)),
  "a pipe of node:http, by an async handler": () =>
    nodeServer(async (response) => void endless().pipe(response)),
  "a pipeline of node:http": () => nodeServer((response) => pipeline(endless(), response).catch(() => {})),
  "writes of node:http that wait for ever": () =>
    nodeServer(async (response) => void response.write("a beginning")),
  "a pipe of Express": () => expressServer((response) => endless().pipe(response)),
  "a file of Express": async () => {
    const path = await bigFile();
    return expressServer((response) => response.sendFile(path, () => {}));
  },
  "a stream of Fastify": () => fastifyServer(endless),
  "a web stream of Fastify": () => fastifyServer(() => Readable.toWeb(endless())),
};

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
}

/** Reads the beginning of an answer, and goes. */
function leaveInTheMiddle(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { headers: { "Fencing-Token": "7" } }, (response) => {
      response.once("data", () => {
        asked.destroy();
        resolve();
      });
      response.on("error", () => {});
    });
    asked.on("error", reject);
  });
}

it.each(Object.entries(servers))("%s: the client goes, the next one gets its turn", async (_name, start) => {
  const url = await listening(await start());
  await leaveInTheMiddle(url);
  const next = await fetch(url, { headers: { "Fencing-Token": "8" } });
  expect([next.status, await next.text()]).toEqual([200, "short"]);
});

it.each([
  ["node:http", () => nodeServer((response) => void setImmediate(() => response.destroy()))],
  ["Express", () => expressServer((response) => setImmediate(() => response.destroy()))],
])("a handler of %s that ends the connection has answered", async (_name, start) => {
  const url = await listening(start());
  await expect(fetch(url, { headers: { "Fencing-Token": "7" } })).rejects.toThrow("fetch failed");
  expect((await fetch(url, { headers: { "Fencing-Token": "8" } })).status).toBe(200);
});
