/** A cluster of three primaries for tests: what each of its nodes says, and slots that move from one to another. */
import { Redis } from "ioredis";
import { ask, startCluster } from "../../scripts/lib/redis-servers.mjs";

/** A running cluster. */
export interface TestCluster {
  readonly ports: readonly number[];
  readonly url: string;
  keysWith(prefix: string): Promise<readonly string[]>;
  /** The place in `ports` of the node that has a slot. */
  ownerOf(slot: number): Promise<number>;
  /** Moves a slot with all its keys; `meanwhile` runs when the keys have moved and the slot has not. */
  moveSlot(slot: number, from: number, to: number, meanwhile?: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** Starts a cluster. */
export async function testCluster(): Promise<TestCluster> {
  const { servers } = await startCluster();
  const ports = servers.map(({ port }) => port);
  const lookers = ports.map((port) => new Redis(port));
  return {
    ports,
    url: `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(",")}`,
    keysWith: async (prefix) =>
      (await Promise.all(lookers.map((looker) => looker.keys(`${prefix}*`)))).flat(),
    ownerOf: (slot) => ownerOf(ports, slot),
    moveSlot: (slot, from, to, meanwhile) => moveSlot(ports, slot, from, to, meanwhile),
    close: async () => {
      for (const looker of lookers) looker.disconnect();
      await Promise.all(servers.map(({ server }) => server.remove()));
    },
  };
}

async function moveSlot(
  ports: readonly number[],
  slot: number,
  from: number,
  to: number,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const ids = await Promise.all(ports.map((port) => ask(port, "cluster", "myid")));
  const [source = 0, target = 0] = [ports[from], ports[to]];
  const order = async (port: number, ...words: readonly string[]): Promise<void> => {
    const answer = await ask(port, ...words);
    if (!/^(OK|NOKEY)$/.test(answer)) throw new Error(`${words.join(" ")}: ${answer}`);
  };
  const set = (port: number, ...words: readonly string[]): Promise<void> =>
    order(port, "cluster", "setslot", String(slot), ...words);
  await set(target, "importing", ids[from] ?? "");
  await set(source, "migrating", ids[to] ?? "");
  for (;;) {
    const keys = (await ask(source, "cluster", "getkeysinslot", String(slot), "100"))
      .split("\n")
      .filter(Boolean);
    if (keys.length === 0) break;
    await order(source, "migrate", "127.0.0.1", String(target), "", "0", "5000", "keys", ...keys);
  }
  await meanwhile();
  // The new owner first: were the old one told before it, nobody would have the slot for a while, and what the nodes tell each
  // other then may leave it so for good.
  for (const port of new Set([target, source, ...ports])) await set(port, "node", ids[to] ?? "");
}

async function ownerOf(ports: readonly number[], slot: number): Promise<number> {
  const nodes = await ask(ports[0] ?? 0, "cluster", "nodes");
  const line = nodes.split("\n").find((each) =>
    each
      .split(" ")
      .slice(8)
      .some((range) => {
        const [first = "", last = first] = range.split("-");
        return /^\d+$/.test(first) && slot >= Number(first) && slot <= Number(last);
      }),
  );
  return ports.findIndex((port) => line?.includes(`:${port}@`));
}
