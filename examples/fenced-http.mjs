/**
 * The late write of a paused holder, refused by a service over HTTP: the caller's fetch carries the token of its lock, and
 * the service lets nothing older in. With Express, Fastify or Hono it is one middleware or hook: fenced-frameworks.mjs.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "holdfast";
import { fencedFetch, fencedHandler } from "holdfast/fencing";

// The service. Its clients have to be told apart from strangers first: a token is no password.
let document = "empty";
const handler = fencedHandler(
  async (request, response) => {
    if (request.method === "PUT") document = await textOf(request);
    response.end(document);
  },
  { resource: ({ url = "" }) => url },
);
const server = createServer((request, response) => void handler(request, response)).listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
assert.ok(typeof address === "object" && address !== null);
const url = `http://127.0.0.1:${address.port}/documents/7`;

/** @type {(request: AsyncIterable<Buffer>) => Promise<string>} */
async function textOf(request) {
  let text = "";
  for await (const part of request) text += part.toString();
  return text;
}

// Its callers.
const locks = await connect("memory:documents");
const paused = await locks.acquire("documents/7", { ttl: 100, renew: false });
const next = await locks.acquire("documents/7", { wait: "5s" });

const accepted = await fencedFetch(next)(url, { method: "PUT", body: "from the next holder" });
assert.equal(accepted.status, 200);
// A paused process would not know yet that its lock is lost: with the token alone, fetch cannot know it either.
const late = fencedFetch(paused.token)(url, { method: "PUT", body: "too late" });
await assert.rejects(late, { code: "LOCK_STALE_TOKEN" });
// With the lock itself, the request is not even sent.
await assert.rejects(fencedFetch(paused)(url, { method: "PUT", body: "too late" }), { code: "LOCK_LOST" });

// What a caller in another language gets.
const headers = { "Fencing-Token": String(paused.token) };
const refusal = await fetch(url, { method: "PUT", body: "too late", headers });
console.log(refusal.status, refusal.headers.get("content-type"), await refusal.json());
assert.equal(refusal.status, 412);
assert.equal((await fetch(url, { method: "PUT", body: "no token" })).status, 428);
assert.equal(await (await fetch(url)).text(), "from the next holder");

await next.release();
await locks.close();
server.closeAllConnections();
server.close();
