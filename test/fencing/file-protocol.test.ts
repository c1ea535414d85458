/**
 * The protocol of the guard for files on a folder of our own, whose steps a seed puts in order: writers overtake each
 * other at every step, are paused and killed, and listings are no picture of one moment.
 */
import { describe, expect, it } from "vitest";
import { floorName, type Folder, look, replace } from "../../src/fencing/file/protocol.ts";
import { seeded } from "../../src/testing/random.ts";

/** A step that waits to be taken. */
interface Step {
  readonly writer: number;
  take(): void;
}

/** Puts steps in order. */
class World {
  readonly files = new Map<string, string>();
  /** The tokens of what was moved, in order. */
  readonly moves: { floor: bigint[]; place: bigint[] } = { floor: [], place: [] };
  steps: Step[] = [];

  step<T>(writer: number, act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const take = (): void => {
        try {
          resolve(act());
        } catch (error) {
          reject(error);
        }
      };
      this.steps.push({ writer, take });
    });
  }

  /** The folder as one writer sees it. */
  folder(writer: number, chance: () => number): Folder {
    const move = (name: string, to: "floor" | "place"): boolean => {
      const content = this.files.get(name);
      if (content === undefined) return false;
      this.files.delete(name);
      if (to === "floor") this.files.set(floorName, content);
      this.moves[to].push(BigInt(name.split(".")[0] ?? ""));
      return true;
    };
    return {
      // Looks at each name at a moment of its own; a name that comes while it looks may be found or not.
      list: async () => {
        const found: string[] = [];
        const first = await this.step(writer, () => [...this.files.keys()]);
        const cut = Math.floor(chance() * (first.length + 1));
        found.push(...first.slice(0, cut));
        const rest = await this.step(writer, () => first.slice(cut).filter((name) => this.files.has(name)));
        found.push(...rest);
        return found;
      },
      read: (name) => this.step(writer, () => this.files.get(name) ?? null),
      announce: (name) => this.step(writer, () => void (this.files.has(name) || this.files.set(name, ""))),
      stage: (name, content) => this.step(writer, () => void this.files.set(name, String(content))),
      remove: (name) => this.step(writer, () => void this.files.delete(name)),
      moveToFloor: (name) => this.step(writer, () => move(name, "floor")),
      moveToPlace: (name) => this.step(writer, () => move(name, "place")),
    };
  }
}

/** How a folder may break its promise. */
type Break = (folder: Folder) => Folder;

const microtasks = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** One run: writers with tokens that meet, and what was wrong; null if nothing. */
async function run(seed: number, broken: Break = (folder) => folder): Promise<string | null> {
  const chance = seeded(seed);
  const world = new World();
  const writers = Array.from({ length: 3 + Math.floor(chance() * 3) }, (_, index) => index);
  const doomed = new Set(writers.filter(() => chance() < 0.2));
  /** A writer's weight: a light one falls behind, as if it were paused. */
  const weights = writers.map(() => (chance() < 0.4 ? 0.05 : 1));
  const calledWith: bigint[] = [];
  const faults: string[] = [];
  /** Calls that ended well, and how many moves there had been by then. */
  const ended: { token: bigint; at: number }[] = [];
  let open = writers.length;
  const work = async (writer: number): Promise<void> => {
    const folder = broken(world.folder(writer, chance));
    for (let call = 0; call < 3; call++) {
      const token = BigInt(1 + Math.floor(chance() * 6));
      calledWith.push(token);
      const highest = await replace(folder, token, chance() < 0.2 ? null : `${token}`);
      if (highest === null) {
        ended.push({ token, at: world.moves.place.length });
      } else if (!calledWith.some((other) => other > token))
        faults.push(`${token} was refused without cause`);
    }
  };
  for (const writer of writers) {
    void work(writer)
      .catch((error: unknown) => faults.push(String(error)))
      .finally(() => open--);
  }
  for (let taken = 0; open > doomed.size || world.steps.length > 0; taken++) {
    await microtasks();
    // The doomed die at some step: it is never taken.
    world.steps = world.steps.filter(({ writer }) => !(doomed.has(writer) && chance() < 0.05));
    if (world.steps.length === 0) break;
    const total = world.steps.reduce((sum, { writer }) => sum + (weights[writer] ?? 1), 0);
    let at = chance() * total;
    const index = world.steps.findIndex(({ writer }) => (at -= weights[writer] ?? 1) < 0);
    world.steps.splice(Math.max(0, index), 1)[0]?.take();
    if (taken > 10_000) return "it does not end";
  }
  for (const { token, at } of ended) {
    const late = world.moves.place.slice(at).find((moved) => moved < token);
    if (late !== undefined) faults.push(`${late} was moved after ${token} had ended`);
  }
  for (const [what, tokens] of Object.entries(world.moves)) {
    const fallen = tokens.findIndex((token, index) => index > 0 && token < (tokens[index - 1] ?? 0n));
    if (fallen > 0) faults.push(`${what}: ${tokens.join(" ")}`);
  }
  return faults.length === 0 ? null : faults.join("; ");
}

/** The first seed whose run shows something wrong. */
async function firstFault(seeds: number, broken?: Break, kind = /./): Promise<string | null> {
  for (let seed = 1; seed <= seeds; seed++) {
    const fault = await run(seed, broken);
    if (fault !== null && kind.test(fault)) return `seed ${seed}: ${fault}`;
  }
  return null;
}

describe("the protocol of files", () => {
  it("moves in the order of tokens, in 3000 orders of its steps", async () => {
    expect(await firstFault(Number(process.env["HOLDFAST_TEST_SEEDS"] ?? 3_000))).toBe(null);
  });

  it.each<[string, Break]>([
    ["nothing is swept", (folder) => ({ ...folder, remove: async () => {} })],
    ["listings come from a cache, as on a network file system", cached],
    ["the floor is not kept", (folder) => ({ ...folder, read: async () => null })],
    ["announcements are lost", (folder) => ({ ...folder, announce: async () => {} })],
  ])("is found out when %s", async (_what, broken) => {
    expect(await firstFault(3_000, broken, /was moved after/)).not.toBe(null);
  });

  it("leaves nothing but the floor behind", async () => {
    const world = new World();
    const folder = world.folder(0, () => 0);
    const driven = async <T>(doing: Promise<T>): Promise<T> => {
      let over = false;
      void doing.finally(() => {
        over = true;
      });
      for (;;) {
        await microtasks();
        if (over) return doing;
        world.steps.shift()?.take();
      }
    };
    world.files
      .set("3", "")
      .set("4.ab.data", "of one who died")
      .set("4.ab.floor", "4\n")
      .set("note.txt", "foreign");
    expect(await driven(replace(folder, 7n, "new"))).toBe(null);
    expect([...world.files.keys()].toSorted()).toEqual([floorName, "note.txt"]);
    expect((await driven(look(folder))).highest).toBe(7n);
    expect(await driven(replace(folder, 6n, "late"))).toBe(7n);
    expect([...world.files.keys()].toSorted()).toEqual([floorName, "note.txt"]);
  });
});

function cached(folder: Folder): Folder {
  let first: Promise<readonly string[]> | null = null;
  return { ...folder, list: () => (first ??= folder.list()) };
}
