/**
 * The late write of a paused holder, refused by a service on Express, on Fastify and on Hono: the fence is one middleware or
 * hook in front of the handler, which is not called for a stale token. With Node alone: fenced-http.mjs.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { connect } from "holdfast";
import { expressFence, fastifyFence, fencedFetch, honoFence } from "holdfast/fencing";

/** What the service keeps. */
let document = "empty";

/** The same service three times. Each starts it, and gives its address and how to end it. */
const services = {
  async Express() {
    const app = express();
    app.use(express.text()); // first the body, so that a slow client keeps nobody waiting
    const fence = expressFence({ resource: (/** @type {express.Request} */ request) => request.path });
    app.put("/documents/:id", fence, (request, response) => {
      document = request.body;
      response.sendStatus(204);
    });
    return listening(app.listen(0, "127.0.0.1"));
  },

  async Fastify() {
    const app = Fastify();
    const resource = (/** @type {import("fastify").FastifyRequest} */ request) => request.url;
    app.put("/documents/:id", { preHandler: fastifyFence({ resource }) }, async (request, reply) => {
      document = String(request.body);
      return reply.code(204).send();
    });
    return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
  },

  async Hono() {
    const app = new Hono();
    const resource = (/** @type {import("hono").Context} */ context) => context.req.path;
    app.put("/documents/:id", honoFence({ resource }), async (context) => {
      document = await context.req.text();
      return context.body(null, 204);
    });
    return listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  },
};

/** @param {Pick<import("node:net").Server, "address" | "close"> & import("node:events").EventEmitter} server */
async function listening(server) {
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() };
}

const locks = await connect("memory:documents");
for (const [name, start] of Object.entries(services)) {
  const service = await start();
  const url = `${service.url}/documents/7`;
  // Without renewal this lock ends after its ttl, as it would for a process that was paused.
  const paused = await locks.acquire("documents/7", { ttl: 100, renew: false });
  const next = await locks.acquire("documents/7", { wait: "5s" });

  const body = `on ${name}, from the next holder`;
  const accepted = await fencedFetch(next)(url, { method: "PUT", body });
  assert.equal(accepted.status, 204);
  // A paused process would not know yet that its lock is lost: with the token alone, fetch cannot know it either.
  const late = fencedFetch(paused.token)(url, { method: "PUT", body: "too late" });
  await assert.rejects(late, { code: "LOCK_STALE_TOKEN" });

  // What a caller in another language gets.
  const headers = { "Fencing-Token": String(paused.token) };
  const refusal = await fetch(url, { method: "PUT", body: "too late", headers });
  const problem = Object(await refusal.json());
  assert.equal(refusal.status, 412);
  assert.match(refusal.headers.get("content-type") ?? "", /^application\/problem\+json/);
  assert.equal(problem.code, "LOCK_STALE_TOKEN");
  assert.equal(problem.highest, String(next.token));

  console.log(
    `${name}: token ${next.token} wrote, then ${paused.token} came too late: ${refusal.status} ${problem.code}`,
  );
  console.log(`  the document: ${document}`);
  assert.equal(document, body);
  await next.release();
  await service.close();
}
assert.equal(document, "on Hono, from the next holder");
await locks.close();
