/** What a theft does on etcd to those who only wait: they join again behind the thief, and those of one client keep their order. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { startOne } from "../helpers/etcd.ts";
import { etcdStore } from "../helpers/etcd-store.ts";

let node: EtcdNode;
beforeAll(async () => {
  node = await startOne();
});
afterAll(() => node.remove());

const [waiters, thefts] = [12, 20];

/** Waiters in turn from each client; then a theft. Gives for each client which of its waiters were granted, in order. */
async function afterTheft(
  clients: readonly LockManager[],
  thief: LockManager,
  name: string,
): Promise<readonly (readonly number[])[]> {
  const granted = clients.map((): number[] => []);
  const victim = await clients[0]?.acquire(name);
  const waits = Array.from({ length: waiters }, async (_, place) => {
    const whose = place % clients.length;
    // Readers and writers alike.
    const mode = place % 5 === 1 ? "shared" : "exclusive";
    await clients[whose]?.request(name, { mode }, () => void granted[whose]?.push(place));
  });
  const pending = async (): Promise<number> => (await thief.query({ prefix: name })).pending.length;
  await expect.poll(pending, { interval: 5, timeout: 5_000 }).toBe(waiters);
  await thief.request(name, { steal: true }, () => {});
  await Promise.all(waits);
  expect(await victim?.release()).toBe("gone");
  return granted;
}

for (const [whose, count, isOther] of [
  ["one client, displaced by another", 1, true],
  ["one client, displaced by itself", 1, false],
  ["each of three clients, displaced by a fourth", 3, true],
] as const) {
  it(`waiters of ${whose}, join again in their order`, async () => {
    const store = await etcdStore([node.endpoint]);
    const open = async (): Promise<LockManager> => connect(await store.client());
    const clients = await Promise.all(Array.from({ length: count }, open));
    const thief = isOther ? await open() : clients[0];
    try {
      if (thief === undefined) throw new Error("no thief");
      for (let theft = 0; theft < thefts; theft++) {
        const granted = await afterTheft(clients, thief, `job:${theft}`);
        for (const each of granted) expect(each).toEqual(each.toSorted((one, other) => one - other));
        expect(granted.flat()).toHaveLength(waiters);
      }
    } finally {
      await store.close();
    }
  }, 60_000);
}
