/** Fencing over HTTP with a real server of each framework: the table of cases, the answers, and clients that go away. */
import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { connect } from "../../src/connect.ts";
import { LockError } from "../../src/core/errors.ts";
import {
  fencedFetch,
  fencedHandler,
  fileGuard,
  type Guard,
  memoryGuard,
  type MemoryGuard,
} from "../../src/fencing/index.ts";
import type { Subject } from "./cases.ts";
import { guardCases } from "./guard-cases.ts";
import { frameworks, freshShelf, type Service, type Shelf, type Start } from "./http-servers.ts";

let folder = "";
const services: Service[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-http-"));
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()));
  await rm(folder, { recursive: true });
});

async function started(start: Start, shelf: Shelf, guard: MemoryGuard): Promise<Service> {
  const service = await start(shelf, guard);
  services.push(service);
  return service;
}

async function subjectOf(start: Start, shelf: Shelf, keep: Guard): Promise<Subject> {
  const guard = memoryGuard({ keep });
  const { url } = await started(start, shelf, guard);
  return {
    async write(token, value) {
      const response = await fencedFetch(token)(url, { method: "PUT", body: value });
      expect(response.status).toBe(200);
      await response.text();
    },
    read: async () => shelf.value,
    // A read that carries a token shows it.
    show: async (token) => (await fencedFetch(token)(url)).text(),
    highest: () => guard.highest("doc"),
    restart: () => subjectOf(start, shelf, keep),
  };
}

for (const [name, start] of Object.entries(frameworks)) {
  // It is enough that it outlives the server.
  // One gate, reached by four ways: a thousand meetings in all.
  guardCases(
    name,
    () => subjectOf(start, freshShelf(), memoryGuard()),
    true,
    name === "node:http" ? 400 : 200,
  );
}

it("tokens that are kept in a file are known after a restart", async () => {
  const files = fileGuard();
  const path = join(folder, "kept");
  const keep: Guard = {
    show: (_resource, holder) => files.show(path, holder),
    highest: () => files.highest(path),
  };
  const before = await subjectOf(frameworks["node:http"], freshShelf(), keep);
  await before.write(34n, "before");
  const after = await before.restart?.();
  await expect(after?.write(33n, "late")).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
  expect(await after?.read()).toBe("before");
});

it.each(Object.entries(frameworks))(
  "%s refuses a stale token also when the guard that keeps tokens is out of reach",
  async (_name, start) => {
    const kept = memoryGuard();
    let away = false;
    const reached = async (): Promise<void> => {
      if (away) throw new LockError("LOCK_UNAVAILABLE", "the database is away");
    };
    const keep: Guard = {
      show: (resource, holder) => reached().then(() => kept.show(resource, holder)),
      highest: (resource) => reached().then(() => kept.highest(resource)),
    };
    const { url } = await started(start, freshShelf(), memoryGuard({ keep }));
    const put = (token: string): Promise<Response> =>
      fetch(url, { method: "PUT", body: "text", headers: { "Fencing-Token": token } });
    expect((await put("34")).status).toBe(200);
    away = true;
    const stale = await put("33");
    expect(stale.status).toBe(412);
    expect(await stale.json()).toMatchObject({ code: "LOCK_STALE_TOKEN", token: "33" });
    expect((await put("35")).status).toBe(503);
  },
);

describe.each(Object.entries(frameworks))("the answers of %s", (_name, start) => {
  it("say what is wrong, in a body that programs can read", async () => {
    const shelf = freshShelf();
    const { url } = await started(start, shelf, memoryGuard());
    const send = (method: string, token: string | undefined): Promise<Response> =>
      fetch(url, {
        method,
        ...(method === "PUT" ? { body: "text" } : {}),
        headers: token === undefined ? {} : { "Fencing-Token": token },
      });
    expect((await send("PUT", "34")).status).toBe(200);

    const stale = await send("PUT", "33");
    expect(stale.status).toBe(412);
    expect(stale.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(await stale.json()).toEqual({
      type: "about:blank",
      title: "Precondition Failed",
      status: 412,
      detail: expect.stringContaining("doc has seen token 34, and 33 is older: nothing was written"),
      code: "LOCK_STALE_TOKEN",
      resource: "doc",
      token: "33",
      highest: "34",
    });
    expect((await send("GET", "33")).status).toBe(412);

    for (const bad of ["", "-1", "034", "34.0", "34, 35", "9223372036854775808"]) {
      const malformed = await send("PUT", bad);
      expect(malformed.status, JSON.stringify(bad)).toBe(400);
      expect(await malformed.json()).toMatchObject({ status: 400, code: "LOCK_INVALID" });
    }
    const missing = await send("PUT", undefined);
    expect(missing.status).toBe(428);
    expect(missing.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(await missing.json()).toMatchObject({ status: 428, title: "Precondition Required" });
    expect((await send("GET", undefined)).status).toBe(200);
    expect(shelf.puts).toBe(1);
  });

  it("do not come too early: a newer write waits for an older one, even if its client has gone", async () => {
    const shelf = freshShelf();
    let go: () => void = () => {};
    let begun: () => void = () => {};
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    shelf.pause = () => {
      begun();
      return new Promise<void>((resolve) => {
        go = resolve;
      });
    };
    const guard = memoryGuard();
    const { url } = await started(start, shelf, guard);
    const leaving = ask(url, { method: "PUT", headers: { "Fencing-Token": "33" } });
    leaving.on("error", () => {});
    leaving.end("old");
    await hasBegun;
    shelf.pause = async () => {};
    leaving.destroy();
    const next = fencedFetch(34n)(url, { method: "PUT", body: "new" });
    // The token has arrived, and its write has to wait: the old one may still write.
    await expect.poll(() => guard.highest("doc")).toBe(34n);
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    expect(shelf.puts).toBe(0);
    go();
    expect((await next).status).toBe(200);
    expect(shelf.value).toBe("new");
    expect(shelf.puts).toBe(2);
  });
});

describe("a handler of node:http", () => {
  const serve = async (handler: Parameters<typeof fencedHandler>[0], wait?: number): Promise<string> => {
    const fenced = fencedHandler(handler, { resource: "doc", ...(wait === undefined ? {} : { wait }) });
    const server = createServer((request, response) => {
      fenced(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => {
      server.once("listening", resolve);
    });
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
  };

  it("may answer by callbacks, and may fail: the next one gets its turn", async () => {
    let calls = 0;
    const url = await serve((_request, response) => {
      calls += 1;
      if (calls === 1) throw new Error("out of luck");
      setImmediate(() => response.end("later"));
    });
    const put = (): Promise<Response> => fencedFetch(7n)(url, { method: "PUT" });
    expect((await put()).status).toBe(500);
    expect(await (await put()).text()).toBe("later");
  });

  it("that asks a guard of its own is answered for: 412 if that refuses, 503 if it is out of reach", async () => {
    const rows = memoryGuard();
    await rows.show("row", 40n);
    const url = await serve(async (request, response) => {
      if (request.url === "/gone") throw new LockError("LOCK_UNAVAILABLE", "the database is away");
      await rows.write("row", 39n, () => {});
      response.end();
    });
    await expect(fencedFetch(39n)(url, { method: "PUT" })).rejects.toMatchObject({
      code: "LOCK_STALE_TOKEN",
    });
    expect((await fencedFetch(39n)(`${url}gone`, { method: "PUT" })).status).toBe(503);
  });

  it("that never answers does not keep others for ever: they get 503", async () => {
    let calls = 0;
    const url = await serve((_request, response) => void (++calls > 1 && response.end()), 50);
    const stuck = fetch(url, { method: "PUT", headers: { "Fencing-Token": "1" } }).catch(() => null);
    await expect.poll(() => calls).toBe(1);
    const next = await fencedFetch(2n)(url, { method: "PUT" });
    expect(next.status).toBe(503);
    expect(await next.json()).toMatchObject({ code: "LOCK_TIMEOUT", resource: "doc" });
    expect(calls).toBe(1);
    void stuck;
  });
});

describe("a fenced fetch", () => {
  const seen: { url: string; headers: Headers; signal: AbortSignal | null | undefined }[] = [];
  const send = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    init?.signal?.throwIfAborted();
    const url = input instanceof Request ? input.url : String(input);
    seen.push({ url, headers: new Headers(init?.headers), signal: init?.signal });
    const body = new URL(url).searchParams.get("body") ?? "{}";
    return new Response(body, { status: 412, headers: { "content-type": "application/problem+json" } });
  };

  it("carries the token beside the headers that are there, and leaves other answers alone", async () => {
    const own = fencedFetch(2n ** 53n + 1n, send);
    const response = await own(new Request("http://x/?body=hello", { headers: { a: "b" } }));
    expect(await response.text()).toBe("hello");
    await own("http://x/", { headers: [["c", "d"]] });
    expect(seen.map(({ headers }) => [...headers.keys()])).toEqual([
      ["a", "fencing-token"],
      ["c", "fencing-token"],
    ]);
    expect(seen[0]?.headers.get("Fencing-Token")).toBe("9007199254740993");
    const odd = JSON.stringify({ code: "LOCK_STALE_TOKEN", highest: "<b>", detail: "no" });
    await expect(own(`http://x/?body=${encodeURIComponent(odd)}`)).rejects.toThrow(/refused token .*: no/);
  });

  it("ends with its lock, and with the caller's signal", async () => {
    await using locks = await connect("memory:");
    const lock = await locks.acquire("doc");
    const controller = new AbortController();
    const own = fencedFetch(lock, send);
    const response = await own("http://x/", { signal: controller.signal });
    const { signal } = seen.at(-1) ?? {};
    expect(signal?.aborted).toBe(false);
    const thief = await locks.acquire("doc", { steal: true });
    expect(signal?.aborted).toBe(true);
    expect(await response.text()).toBe("{}");
    await expect(own("http://x/")).rejects.toMatchObject({ code: "LOCK_LOST" });
    await thief.release();
    expect(() => fencedFetch({ token: 1n, mode: "shared" })).toThrow(/shared/);
  });

  it("leaves nothing at a signal that lives for long, once its answers are read and forgotten", async () => {
    await using locks = await connect("memory:");
    const lock = await locks.acquire("doc");
    const { signal } = new AbortController();
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("gc");
    if (typeof collect !== "function") throw new Error("no gc");
    const listeners = (): number => getEventListeners(signal, "abort").length;
    const fails = fencedFetch(lock, () => Promise.reject(new Error("no network")));
    await expect(fails("http://x/", { signal })).rejects.toThrow("no network");
    const empty = fencedFetch(lock, async () => new Response(null));
    await empty("http://x/", { signal });
    expect(listeners()).toBe(0);
    const own = fencedFetch(lock, async () => new Response("text"));
    for (let count = 0; count < 20; count++) await (await own("http://x/", { signal })).text();
    let last: Response | null = await own("http://x/", { signal });
    collect();
    expect([listeners(), await last.text()]).toEqual([1, "text"]);
    last = null;
    await vi.waitFor(() => {
      collect();
      expect(listeners()).toBe(0);
    });
    await lock.release();
  });
});
