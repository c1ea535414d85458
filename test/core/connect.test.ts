/** From a URL or a backend to a LockManager, and what a store must be able to do. */
import { describe, expect, it } from "vitest";
import { memoryBackend, memoryTraits } from "../../src/backends/memory/index.ts";
import { connect } from "../../src/connect.ts";
import type { Traits } from "../../src/core/backend.ts";
import { LockManager } from "../../src/core/manager.ts";
import { demand, type Requirements } from "../../src/core/traits.ts";
import { Controlled } from "../helpers/controlled.ts";
import { rejection } from "../helpers/promises.ts";

const untypedConnect = (...args: unknown[]): Promise<unknown> => Reflect.apply(connect, undefined, args);
const untypedDemand = (requirements: unknown, traits: Traits = memoryTraits): void => {
  Reflect.apply(demand, undefined, ["memory", traits, requirements]);
};

describe("connect", () => {
  it("gives a LockManager for a URL", async () => {
    await using locks = await connect("memory:connect-1");
    expect(locks).toBeInstanceOf(LockManager);
    expect(locks.traits.scope).toBe("process");
  });

  it("shares a store among those who give the same URL, and only them", async () => {
    await using one = await connect("memory:connect-2");
    await using two = await connect("memory:connect-2");
    await using three = await connect("memory:connect-3");
    await using held = await one.acquire("a");
    expect(held.held).toBe(true);
    expect(await two.tryAcquire("a")).toBeNull();
    expect((await three.tryAcquire("a"))?.held).toBe(true);
    expect(one.clientId).not.toBe(two.clientId);
  });

  it("takes a backend, and closes it with the manager", async () => {
    const backend = new Controlled(memoryBackend());
    const locks = await connect(backend);
    await locks.acquire("a");
    await locks.close();
    expect(backend.count("close")).toBe(1);
  });

  it("refuses an unknown scheme, and shows no password", async () => {
    const error = await rejection(connect("mongo://root:hunter2@db.example:1/x?secret=hunter2"));
    expect(error).toMatchObject({ code: "LOCK_UNSUPPORTED" });
    expect(error).toHaveProperty("message", expect.stringContaining("there is no store for mongo:"));
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("hunter2");
  });

  it.each([["no-scheme"], [""], ["//root:hunter2@db/x"], ["1redis://hunter2"]])(
    "refuses a text without a scheme without repeating it: %j",
    async (url) => {
      const error = await rejection(connect(url));
      expect(error).toMatchObject({ code: "LOCK_UNSUPPORTED" });
      expect(error).toHaveProperty("message", expect.not.stringContaining("hunter2"));
    },
  );

  it.each([[null], [7], [{}], [{ append: true }], [{ append: () => {} }], [[]]])(
    "refuses what is neither: %o",
    async (store) => {
      expect(await rejection(untypedConnect(store))).toMatchObject({
        name: "TypeError",
        code: "LOCK_INVALID",
      });
    },
  );

  it("refuses a store that lacks what is required, and closes it", async () => {
    const backend = new Controlled(memoryBackend());
    const error = await rejection(connect(backend, { require: { scope: "network" } }));
    expect(error).toMatchObject({ code: "LOCK_UNSUPPORTED", backend: "memory" });
    expect(backend.count("close")).toBe(1);
  });

  it("refuses bad options, and closes the store", async () => {
    const backend = new Controlled(memoryBackend());
    expect(await rejection(connect(backend, { ttl: 0 }))).toMatchObject({ code: "LOCK_INVALID" });
    expect(backend.count("close")).toBe(1);
  });

  it.each<[unknown, string]>([
    [
      { requires: { scope: "network" } },
      'there is no option "requires" here; there are label, ttl, reentrant, clientId, clock, random, require',
    ],
    [{ tll: "5s" }, 'there is no option "tll" here'],
    [5, "options must be an object, not number"],
    [[], "options must be an object, not an array"],
    [{ require: "network" }, "require must be an object, not string"],
    [{ require: ["scope"] }, "require must be an object, not an array"],
    [{ label: 5 }, "label must be a string, not number"],
    [{ label: null }, "label must be a string, not null"],
    [{ label: "\ud800" }, "label must be well-formed Unicode"],
    [{ label: "a\0b" }, "label must not contain a NUL character"],
    [{ label: "x".repeat(513) }, "label may have 512 bytes of UTF-8 at most, this has 513"],
    [{ clientId: 5 }, "clientId must be a string, not number"],
    [{ reentrant: "yes" }, "reentrant must be true or false, not string"],
  ])("refuses options that there are not: %o", async (options, message) => {
    const backend = new Controlled(memoryBackend());
    const error = await rejection(untypedConnect(backend, options));
    expect(error).toMatchObject({ name: "TypeError", code: "LOCK_INVALID" });
    expect(error).toHaveProperty("message", expect.stringContaining(message));
    expect(backend.count("close")).toBe(1);
  });

  it.each([[undefined], [null], [{}], [{ require: undefined, label: undefined, ttl: undefined }]])(
    "takes no options as well: %o",
    async (options) => {
      const locks = await untypedConnect(memoryBackend(), options);
      expect(locks).toBeInstanceOf(LockManager);
    },
  );
});

describe("what is required of a store", () => {
  const poor: Traits = {
    ...memoryTraits,
    order: "none",
    shared: false,
    counted: false,
    tokens: null,
    wake: "poll",
    exclusivityBrokenBy: ["fail-over", "store-restart"],
  };

  it.each<[Requirements, string]>([
    [
      { scope: "network" },
      "it excludes only clients of the same process; use a server such as redis, postgres, etcd",
    ],
    [{ scope: "machine" }, "it excludes only clients of the same process; use sqlite or a server"],
    [{ order: "fifo" }, "it keeps no order; use a store with a queue such as redis, postgres, etcd"],
    [{ fencing: true }, "its locks carry no token; use a store with a queue such as redis, postgres, etcd"],
    [{ shared: true }, "it has no shared locks; use a store with a queue such as redis, postgres, etcd"],
    [{ counted: true }, "it has no semaphores; use a store with a queue such as redis, postgres, etcd"],
    [{ wake: "push" }, "its waiters have to poll; use a store that pushes, such as redis, postgres, etcd"],
    [
      { survives: ["clock-step", "fail-over"] },
      "two may hold at once after: fail-over; use a consensus store such as etcd or zookeeper",
    ],
  ])("is refused with the reason: %o", (requirements, lack) => {
    const [key] = Object.keys(requirements);
    expect(() => demand("poor", poor, requirements)).toThrow(
      expect.objectContaining({
        code: "LOCK_UNSUPPORTED",
        backend: "poor",
        message: `poor does not meet require.${key}: ${lack}`,
      }),
    );
  });

  it.each<[Requirements]>([
    [{}],
    [{ fencing: false, shared: false, counted: false }],
    [{ scope: undefined, order: undefined }],
    [{ survives: [] }],
    [{ survives: ["clock-step"] }],
  ])("is met if nothing of it is lacking: %o", (requirements) => {
    expect(() => demand("poor", poor, requirements)).not.toThrow();
  });

  it.each([
    [{ speed: "fast" }],
    [{ scope: "planet" }],
    [{ order: "lifo" }],
    [{ wake: "never" }],
    [{ fencing: "yes" }],
    [{ survives: ["failover"] }],
    [{ survives: "fail-over" }],
    [{ survives: null }],
  ])("is refused as LOCK_INVALID when it is no demand that there is: %o", (requirements) => {
    expect(() => untypedDemand(requirements)).toThrow(
      expect.objectContaining({ name: "TypeError", code: "LOCK_INVALID" }),
    );
  });
});
