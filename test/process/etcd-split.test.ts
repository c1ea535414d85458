/** Three etcd members of which one is cut off, by network namespaces and by proxies: what a partition is, whichever way it is made. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EtcdNode } from "../../src/verify/servers/etcd.ts";
import type { SplitCluster } from "../../src/verify/servers/etcd-split.ts";
import { leaderOf } from "../helpers/etcd.ts";
import { splitWays } from "../helpers/etcd-split.ts";

const patience = { timeout: 15_000, interval: 100 };

/** What a member answers within a second; null if it does not, or says that it cannot. */
async function ask({ endpoint }: EtcdNode, call: string, question: object): Promise<string | null> {
  const about = { method: "POST", body: JSON.stringify(question), signal: AbortSignal.timeout(1_000) };
  try {
    const answer = await fetch(`${endpoint}/v3/${call}`, about);
    const text = await answer.text();
    return answer.ok ? text : null;
  } catch {
    return null;
  }
}

/** Reads what the majority has agreed on. */
const serves = async (node: EtcdNode): Promise<boolean> =>
  (await ask(node, "kv/range", { key: btoa("x") })) !== null;

/** The id of a member, and of whom it takes for the leader; 0 is nobody. */
async function idsOf(node: EtcdNode): Promise<{ readonly own: bigint; readonly leader: bigint }> {
  const status = (await ask(node, "maintenance/status", {})) ?? "";
  const find = (name: string): bigint => BigInt(new RegExp(`"${name}":"(\\d+)"`).exec(status)?.[1] ?? 0);
  return { own: find("member_id"), leader: find("leader") };
}

/** How many bytes a member has got from others: from all, or from one. */
async function received(listener: EtcdNode, speaker?: EtcdNode): Promise<number> {
  const id = speaker === undefined ? null : (await idsOf(speaker)).own.toString(16);
  return listener.metric(`etcd_network_peer_received_bytes_total${id === null ? "" : `{From="${id}"}`}`);
}

/** After how long a member has tried every way to reach another: etcd gives up a stream that is silent after five seconds. */
const streamsMs = 6_000;

describe.each(splitWays)("cut off by %s", (_way, start) => {
  let cluster: SplitCluster;
  let nodes: readonly EtcdNode[];

  beforeEach(async () => {
    cluster = await start();
    nodes = cluster.nodes;
  });

  afterEach(() => cluster.remove());

  const allServe = (): Promise<boolean[]> => Promise.all(nodes.map(serves));
  const placeOf = (node: EtcdNode): number => nodes.indexOf(node) + 1;
  const allBut = (lonely: EtcdNode): boolean[] => nodes.map((node) => node !== lonely);

  /** The leader and the two that follow. */
  async function roles(): Promise<readonly [leader: EtcdNode, lonely: EtcdNode, other: EtcdNode]> {
    const leader = await leaderOf(nodes);
    const [lonely, other] = nodes.filter((node) => node !== leader);
    if (lonely === undefined || other === undefined) throw new Error("nobody follows");
    return [leader, lonely, other];
  }

  it("a member that follows serves nobody, and nothing that it says is heard", async () => {
    const [leader, lonely, other] = await roles();
    const lease = /"ID":"(\d+)"/.exec((await ask(leader, "lease/grant", { TTL: 60 })) ?? "")?.[1];
    const renew = async (node: EtcdNode): Promise<boolean> =>
      (await ask(node, "lease/keepalive", { ID: lease }))?.includes('"TTL":"60"') === true;
    for (const node of nodes) await expect.poll(() => renew(node), patience).toBe(true);
    const heard = async (): Promise<number[]> => [
      await received(lonely),
      (await received(leader, lonely)) + (await received(other, lonely)),
    ];
    for (const bytes of await heard()) expect(bytes).toBeGreaterThan(0);
    await cluster.cutOff(placeOf(lonely));
    // It believes in its leader for a while, and passes renewals on to it.
    expect(await renew(lonely)).toBe(false);
    await expect.poll(() => renew(other), patience).toBe(true);
    await expect.poll(() => lonely.metric("etcd_server_has_leader"), patience).toBe(0);
    const before = await heard();
    await sleep(streamsMs);
    expect(await heard()).toEqual(before);
    await expect.poll(allServe, patience).toEqual(allBut(lonely));
    await cluster.cutOff(placeOf(lonely), false);
    await expect.poll(allServe, patience).toEqual([true, true, true]);
    await expect.poll(() => renew(lonely), patience).toBe(true);
  }, 60_000);

  it("another leads in place of the leader, and all agree on one when it is back", async () => {
    const [leader] = await roles();
    await cluster.cutOff(placeOf(leader));
    await expect.poll(allServe, patience).toEqual(allBut(leader));
    await expect.poll(() => leader.leads(), patience).toBe(false);
    const next = await leaderOf(nodes);
    expect(next).not.toBe(leader);
    await ask(next, "kv/put", { key: btoa("missed"), value: btoa("1") });
    await cluster.cutOff(placeOf(leader), false);
    await expect.poll(allServe, patience).toEqual([true, true, true]);
    expect(await ask(leader, "kv/range", { key: btoa("missed") })).toContain('"count":"1"');
    const led = async (): Promise<boolean[]> => {
      const ids = await Promise.all(nodes.map(idsOf));
      return nodes.map((_, place) => ids.every(({ leader: id }) => id === ids[place]?.own));
    };
    // One of them, by the word of all.
    await expect.poll(async () => (await led()).filter(Boolean), patience).toEqual([true]);
  }, 60_000);

  it("a member that was killed comes back when it is let back, and is cut off until then", async () => {
    const [, lonely] = await roles();
    await cluster.cutOff(placeOf(lonely));
    await lonely.kill();
    const starting = lonely.start();
    await sleep(2_000);
    await expect.poll(allServe, patience).toEqual(allBut(lonely));
    await cluster.cutOff(placeOf(lonely), false);
    await starting;
    await expect.poll(allServe, patience).toEqual([true, true, true]);
  }, 60_000);
});
