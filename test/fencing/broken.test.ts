/** Each case of the table can fail: for each there is a guard with one mistake that it finds. */
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { isStale, staleToken } from "../../src/fencing/guard.ts";
import { cases, type Subject } from "./cases.ts";

/** The right guard, in parts that can be wrong. */
class Parts implements Subject {
  value: string | null = null;
  seen: bigint | null = null;

  stale(token: bigint): boolean {
    return isStale(token, this.seen);
  }

  refuse(token: bigint): void {
    if (this.stale(token)) throw staleToken({ resource: "r", token, highest: this.seen ?? 0n });
  }

  async write(token: bigint, value: string): Promise<void> {
    this.refuse(token);
    this.seen = token;
    this.value = value;
  }

  async read(): Promise<string | null> {
    return this.value;
  }

  async show(token: bigint): Promise<void> {
    this.refuse(token);
    this.seen = token;
  }

  async highest(): Promise<bigint | null> {
    return this.seen;
  }

  restart: (() => Promise<Subject>) | null = async () => this;
}

/** A guard with one mistake, by the case that must find it. */
const mistakes: Readonly<Record<string, () => Subject>> = {
  "the first token is accepted, whatever it is": () =>
    new (class extends Parts {
      override stale(token: bigint): boolean {
        return this.seen === null ? token < 1_000_000n : token < this.seen;
      }
    })(),
  "a stale token is refused, and nothing is written": () =>
    new (class extends Parts {
      // Writes first, and looks after that.
      override async write(token: bigint, value: string): Promise<void> {
        this.value = value;
        await super.write(token, value);
      }
    })(),
  "an equal token is accepted: it is the same holder": () =>
    new (class extends Parts {
      override stale(token: bigint): boolean {
        return this.seen !== null && token <= this.seen;
      }
    })(),
  "a newer token is accepted, with gaps": () =>
    new (class extends Parts {
      override stale(token: bigint): boolean {
        return this.seen !== null && token !== this.seen && token !== this.seen + 1n;
      }
    })(),
  "a refused token does not lower the highest": () =>
    new (class extends Parts {
      override refuse(token: bigint): void {
        try {
          super.refuse(token);
        } catch (error) {
          this.seen = token;
          throw error;
        }
      }
    })(),
  "tokens are compared as numbers, not as text": () =>
    new (class extends Parts {
      override stale(token: bigint): boolean {
        return this.seen !== null && String(token) < String(this.seen);
      }
    })(),
  "tokens above 2^53 are told apart, up to the highest": () =>
    new (class extends Parts {
      override stale(token: bigint): boolean {
        return this.seen !== null && Number(token) < Number(this.seen);
      }
    })(),
  "a token that was only shown refuses older ones, and writes nothing": () =>
    new (class extends Parts {
      override async show(token: bigint): Promise<void> {
        this.refuse(token);
      }
    })(),
  "the highest token is kept when the guard's process starts anew": () =>
    new (class extends Parts {
      override restart = async (): Promise<Subject> => Object.assign(new Parts(), { value: this.value });
    })(),
  "two writers that meet over and over: a stale write never comes last": () =>
    new (class extends Parts {
      // The check and the write are two steps.
      override async write(token: bigint, value: string): Promise<void> {
        this.refuse(token);
        if (token % 2n === 0n) await turn();
        this.seen = token;
        this.value = value;
      }
    })(),
};

describe("the table of cases", () => {
  it.each(cases)("passes a right guard: $name", async ({ run }) => {
    await run(new Parts(), async () => new Parts(), 1_000);
  });

  it("has a broken guard for each case, and no other", () => {
    expect(Object.keys(mistakes).toSorted()).toEqual(cases.map(({ name }) => name).toSorted());
  });

  it.each(cases)("finds the broken guard: $name", async ({ name, run }) => {
    const open = mistakes[name] ?? (() => new Parts());
    await expect(run(open(), async () => open(), 1_000)).rejects.toThrow();
  });
});
