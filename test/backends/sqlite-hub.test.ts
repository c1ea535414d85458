/** The line between processes, between two hubs of one process: what is sent arrives whole, and an end is heard. */
import { chown, mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Hub, makeOwn } from "../../src/backends/sqlite/hub.ts";
import { firstOf, lineOf, type Message, messageOf } from "../../src/backends/sqlite/messages.ts";

/** A hub, and what it hears, in order. */
class Station {
  readonly hub: Hub;
  readonly #heard: string[] = [];
  #onNews: () => void = () => {};

  constructor(file: string) {
    const hear = (what: string): void => {
      this.#heard.push(what);
      this.#onNews();
    };
    this.hub = new Hub(file, { onMessage: hear, onLost: (process) => hear(`lost ${process}`) });
    this.hub.start();
  }

  /** The first so many that it heard. */
  async heard(count: number): Promise<readonly string[]> {
    while (this.#heard.length < count) {
      await new Promise<void>((resolve) => {
        this.#onNews = resolve;
      });
    }
    return this.#heard.slice(0, count);
  }
}

describe("hubs of a file", () => {
  let folder: string;
  let one: Station;
  let other: Station;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-hub-"));
    const file = join(folder, "locks.db");
    one = new Station(file);
    other = new Station(file);
  });

  afterEach(async () => {
    await Promise.all([one.hub.close(), other.hub.close()]);
    await rm(folder, { recursive: true });
  });

  it("tell one that waits for them, and one that has never said a word", async () => {
    one.hub.keep(other.hub.name);
    one.hub.send(other.hub.name, "hello");
    await other.heard(1);
    for (const line of ["a", "b", "c"]) other.hub.send(one.hub.name, line);
    expect(await one.heard(3)).toEqual(["a", "b", "c"]);
    const third = new Station(join(folder, "locks.db"));
    third.hub.send(one.hub.name, "d");
    expect(await one.heard(4)).toEqual(["a", "b", "c", "d"]);
    await third.hub.close();
  });

  it("tell lines whole that are longer than what is read at a time, on either kind of socket", async () => {
    const long = "x".repeat(70_000);
    one.hub.keep(other.hub.name);
    one.hub.send(other.hub.name, long);
    expect(await other.heard(1)).toEqual([long]);
    other.hub.send(one.hub.name, long);
    other.hub.send(one.hub.name, "short");
    expect(await one.heard(2)).toEqual([long, "short"]);
  });

  it("hear that one has ended with which they stay in touch", async () => {
    one.hub.keep(other.hub.name);
    one.hub.send(other.hub.name, "hello");
    await other.heard(1);
    expect(one.hub.isInTouch(other.hub.name)).toBe(true);
    await other.hub.close();
    expect(await one.heard(1)).toEqual([`lost ${other.hub.name}`]);
    expect(one.hub.isInTouch(other.hub.name)).toBe(false);
  });
});

describe.runIf(process.getuid?.() === 0)("the directory of the sockets", () => {
  it("is not made within one of somebody else, who could exchange it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-hub-"));
    const [theirs, inside] = [join(folder, "hubs-0"), join(folder, "hubs-0", "digest")];
    await mkdir(theirs);
    await chown(theirs, 65_534, 65_534);
    expect(() => makeOwn(inside)).toThrow("belongs to somebody else");
    await chown(theirs, 0, 0);
    makeOwn(inside);
    expect((await stat(inside)).mode & 0o777).toBe(0o700);
    expect((await stat(theirs)).mode & 0o777).toBe(0o700);
    await rm(folder, { recursive: true });
  });
});

describe("messages", () => {
  const standing = {
    id: "id",
    owner: { client: "c", host: "münchen", pid: 1, label: "🗝 \n" },
    mode: "write",
    weight: 1,
    permits: undefined,
    seq: 2n ** 60n,
    sinceUs: 1,
    untilUs: 2,
    metadata: "日本",
    process: "p",
    slot: 3,
  } as const;
  const fresh = { self: standing, count: 1, weight: 1, nearest: standing, nearestWriter: null };
  const messages: readonly Message[] = [
    firstOf(standing),
    { kind: "turn", seq: "1", fresh },
    { kind: "turn", seq: "1", fresh: null },
    { kind: "evicted", queue: "q\n–", id: "id", slot: 3 },
  ];

  it.each(messages)("are one line of ASCII, and the same on the other side: %o", (message) => {
    const line = lineOf(message);
    expect(line).toMatch(/^[ -~]+$/);
    expect(messageOf(line)).toEqual(message);
  });

  it("that are not understood are nothing, or name nobody", () => {
    expect(messageOf('{"kind":"later"}')).toBeNull();
    expect(messageOf("{")).toBeNull();
    expect(messageOf("")).toEqual({ kind: "first", text: "" });
  });
});
