/**
 * The late write of a paused holder, refused by Redis: one script checks the token and writes. It runs on the server of
 * REDIS_URL, or starts one of its own.
 */
import assert from "node:assert/strict";
import { connect } from "holdfast";
import { redisGuard } from "holdfast/fencing";
import { Redis } from "ioredis";
import { startRedis } from "../scripts/lib/redis-servers.mjs";

const onDisk = ["--appendonly", "yes", "--appendfsync", "always"];
const started = process.env["REDIS_URL"] === undefined ? await startRedis({ args: onDisk }) : undefined;
const url = process.env["REDIS_URL"] ?? `redis://127.0.0.1:${started?.port}`;
const client = new Redis(url);
const locks = await connect(url);
const guard = redisGuard({ client });

const paused = await locks.acquire("price:7", { ttl: 200, renew: false });
const next = await locks.acquire("price:7", { wait: "5s" });

await guard.write("price:7", next, "42 EUR", { ttl: "1h" });
await assert.rejects(guard.write("price:7", paused, "39 EUR"), { code: "LOCK_STALE_TOKEN" });

// More than a SET: a script of your own, behind the same check.
const count = {
  script: "return redis.call('HINCRBY', KEYS[2], 'changes', ARGV[1])",
  keys: ["stats:7"],
  args: ["1"],
};
assert.equal(await guard.run("price:7", next, count), 1);
await assert.rejects(guard.run("price:7", paused, count), { code: "LOCK_STALE_TOKEN" });

console.log(`price: ${await client.get("price:7")}; changes: ${await client.hget("stats:7", "changes")}`);
assert.equal(await client.get("price:7"), "42 EUR");
assert.equal(await client.hget("stats:7", "changes"), "1");

await next.release();
await client.del("price:7", "stats:7", "holdfast:fence:{price:7}");
await locks.close();
client.disconnect();
await started?.server.remove();
