/** A store's address never shows its credentials, whatever they look like. */
import { assert, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import type { Given } from "../../src/cli/command.ts";
import { secretsOf, showStore } from "../../src/cli/store-url.ts";
import { storeOf } from "../../src/cli/store.ts";

describe("showStore", () => {
  it.each([
    ["redis://cache:6379/2", "redis://cache:6379/2"],
    ["redis://:hunter22@cache:6379/2", "redis://cache:6379/2"],
    ["postgres://app:pa%40ss@db/locks?sslmode=require&password=x", "postgres://db/locks"],
    ["postgres://app:p@ss/w?rd#1@db/locks", "postgres://db/locks"],
    ["redis://user:12?34@cache", "redis://cache"],
    ["redlock://u:p@a:1,u:p@b:2", "redlock://b:2"],
    ["etcd://h1:2379,h2:2379", "etcd://h1:2379,h2:2379"],
    ["sqlite:/var/lib/a@b/locks.db?key=secret", "sqlite:/var/lib/a@b/locks.db"],
    ["sqlite:///var/lib/locks.db", "sqlite:///var/lib/locks.db"],
    ["memory:", "memory:"],
    ["hunter22@host", "without a scheme"],
  ])("%s is shown as %s", (url, shown) => {
    expect(showStore(url)).toBe(shown);
  });

  it("names the default", () => {
    expect(showStore(undefined)).toContain("sqlite");
  });

  it("shows no password of any characters", () => {
    assert(
      property(string({ minLength: 6 }), (password) => {
        const secret = `<${password}>`;
        expect(showStore(`redis://user:${secret}@cache:6379/0`)).toBe("redis://cache:6379/0");
      }),
    );
  });
});

describe("storeOf", () => {
  const env = { HOLDFAST_STORE: "redis://cache" };
  const given = (values: Record<string, string>): Given => ({
    value: (name) => values[name],
    flag: () => false,
  });

  it("names what a call speaks to: the option, the environment, or servers of its own", () => {
    expect(storeOf({ given: given({ store: "etcd://h" }), env })).toBe("etcd://h");
    expect(storeOf({ given: given({}), env })).toBe("redis://cache");
    expect(storeOf({ given: given({ cluster: "zookeeper" }), env })).toBe("zookeeper (throwaway)");
  });
});

describe("secretsOf", () => {
  it("takes the address and its parts out of a driver's message", () => {
    const clean = secretsOf("postgres://app:pa%40ss@db/locks?auth_token=abc123&x=visible");
    const text =
      "connect postgres://app:pa%40ss@db/locks?auth_token=abc123&x=visible: pa@ss, pa%40ss, abc123, visible";
    expect(clean(text)).toBe("connect postgres://db/locks: ***, ***, ***, visible");
  });

  it("leaves text alone where there is no secret", () => {
    expect(secretsOf("redis://cache:6379")("cache:6379 refused")).toBe("cache:6379 refused");
    expect(secretsOf(undefined)("text")).toBe("text");
    expect(secretsOf("")("text")).toBe("text");
    expect(secretsOf("x")("text")).toBe("text");
    expect(secretsOf("sqlite:/tmp/a@b")("/tmp/a@b is full")).toBe("/tmp/a@b is full");
  });

  it("survives an address that cannot be decoded", () => {
    expect(secretsOf("redis://u:100%@h")("it said 100%")).toBe("it said ***");
  });

  it("leaves a user without a password alone, who may be named like the scheme", () => {
    const clean = secretsOf("postgres://postgres@db/app");
    expect(clean("the store postgres://db/app does not answer")).toBe(
      "the store postgres://db/app does not answer",
    );
  });
});
