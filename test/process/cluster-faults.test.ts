/** The faults of servers of `holdfast verify --cluster`: each does to a real server what docs/verify.md says, and heals. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { hasZooCode } from "../../src/backends/zookeeper/client/index.ts";
import { etcdCluster } from "../../src/verify/clusters/etcd.ts";
import { type Cluster, clusters } from "../../src/verify/clusters/index.ts";
import { type ClusterName, clusterNames } from "../../src/verify/clusters/names.ts";
import { Fleet } from "../../src/verify/live/fleet.ts";
import type { Heal, ServerFault } from "../../src/verify/live/nemesis.ts";
import type { ServerFaultKind } from "../../src/verify/live/plan.ts";
import { ProxyCluster } from "../../src/verify/servers/etcd-proxies.ts";
import { askServer } from "../../src/verify/servers/zookeeper.ts";
import { noTask } from "../helpers/no-task.ts";
import { openAcl, rawSession } from "../helpers/zookeeper.ts";

/** A connection to one server. */
interface Talk {
  write(key: string): Promise<unknown>;
  has(key: string): Promise<boolean>;
  /** The time of the server, where there is a fault that changes it. */
  nowMs?(): Promise<number>;
  close(): unknown;
}

/** Opens a connection to the server at a place of a URL; rejects if it does not serve within a moment. */
type Open = (url: string, place: number) => Promise<Talk>;

const openMs = 1_000;

const addressOf = (url: string, place: number): string =>
  url.replace(/^\w+:\/\//, "").split(",")[place] ?? "";

const openRedis: Open = async (url, place) => {
  const client = new Redis(`redis://${addressOf(url, place)}`, {
    lazyConnect: true,
    connectTimeout: openMs,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  client.on("error", () => {});
  await client.connect();
  return {
    write: (key) => client.set(key, "1"),
    has: async (key) => (await client.exists(key)) === 1,
    nowMs: async () => Number((await client.time())[0]) * 1_000,
    close: () => client.disconnect(),
  };
};

interface SqlClient {
  readonly rows: (text: string) => Promise<readonly Record<string, unknown>[]>;
  readonly close: () => unknown;
}

const openSql =
  (connect: (url: string) => Promise<SqlClient>, now: string): Open =>
  async (url) => {
    const { rows, close } = await connect(url);
    const number = async (text: string): Promise<number> => Number((await rows(text))[0]?.["n"]);
    return {
      write: async (key) => {
        await rows("CREATE TABLE IF NOT EXISTS kept (name VARCHAR(40))");
        await rows(`INSERT INTO kept VALUES ('${key}')`);
      },
      has: async (key) => (await number(`SELECT count(*) AS n FROM kept WHERE name = '${key}'`)) > 0,
      nowMs: async () => 1_000 * (await number(`SELECT ${now} AS n`)),
      close,
    };
  };

const connectPostgres = async (url: string): Promise<SqlClient> => {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: openMs });
  client.on("error", () => {});
  await client.connect();
  return {
    rows: async (text) => (await client.query(text)).rows,
    // Nobody waits for it: a server that was not healed does not say goodbye.
    close: () => void client.end().catch(() => {}),
  };
};

const connectMysql = async (url: string): Promise<SqlClient> => {
  const connection = await createConnection({ uri: url, connectTimeout: openMs });
  connection.on("error", () => {});
  return {
    rows: async (text) => (await connection.query<RowDataPacket[]>(text))[0],
    close: () => connection.destroy(),
  };
};

const openZooKeeper: Open = async (url, place) => {
  const session = rawSession(addressOf(url, place), { reachMs: openMs });
  const has = async (key: string): Promise<boolean> => (await session.exists(`/${key}`)) !== null;
  await has("").catch(async (error: unknown) => {
    await session.close();
    throw error;
  });
  return {
    // One that exists already is a write as well: this server has seen it by then.
    write: (key) =>
      session
        .create({ path: `/${key}`, data: Buffer.of(), acl: openAcl, mode: "persistent" })
        .catch((error: unknown) => {
          if (!hasZooCode(error, "nodeExists")) throw error;
        }),
    has,
    close: () => session.close(),
  };
};

const openEtcd: Open = async (url, place) => {
  const ask = async (call: string, question: object, signal?: AbortSignal): Promise<object> => {
    const about = {
      method: "POST",
      body: JSON.stringify(question),
      ...(signal === undefined ? {} : { signal }),
    };
    const answer = await fetch(`http://${addressOf(url, place)}/v3/kv/${call}`, about);
    if (!answer.ok) throw new Error(await answer.text());
    return JSON.parse(await answer.text());
  };
  await ask("range", { key: btoa("x") }, AbortSignal.timeout(openMs));
  return {
    write: (key) => ask("put", { key: btoa(key), value: btoa("1") }),
    // What this member has itself: whoever asks for more is turned away when the leader changes.
    has: async (key) => "kvs" in (await ask("range", { key: btoa(key), serializable: true })),
    close: () => {},
  };
};

const openPostgres = openSql(connectPostgres, "extract(epoch FROM clock_timestamp())");
const openMysql = openSql(connectMysql, "unix_timestamp(now(6))");

/** How each cluster is talked to, and which faults it has. */
const stories: Readonly<Record<ClusterName, readonly [open: Open, ...faults: readonly string[]]>> = {
  redis: [openRedis, "server-pause", "server-kill", "server-empty", "clock-jump"],
  "redis-failover": [openRedis, "promote"],
  redlock: [openRedis, "server-pause", "server-kill", "server-empty", "clock-jump"],
  etcd: [openEtcd, "server-pause", "server-kill", "partition", "leader-partition"],
  zookeeper: [openZooKeeper, "server-pause", "server-kill", "partition"],
  postgres: [openPostgres, "server-pause", "server-kill", "clock-jump"],
  mysql: [openMysql, "server-pause", "server-kill", "clock-jump"],
};

/** What a probe has at hand. */
interface Scene {
  /** To each server, opened before the fault; each has `key`. */
  readonly talks: readonly Talk[];
  readonly key: string;
  readonly open: (place: number) => Promise<Talk>;
  /** Which servers let somebody in who comes now. */
  readonly serving: () => Promise<readonly boolean[]>;
  /** Once healed, all serve again. */
  readonly strike: () => Promise<{ readonly place: number; readonly heal: Heal }>;
}

const patience = { timeout: 30_000, interval: 100 };

/** What each kind of fault means. */
const probes: Readonly<Record<ServerFaultKind, (scene: Scene) => Promise<void>>> = {
  "server-pause": async ({ talks, key, strike }) => {
    const { place, heal } = await strike();
    let asked: Promise<boolean> | undefined;
    const answer = (): Promise<boolean | string | undefined> => {
      asked = talks[place]?.has(key);
      return Promise.race([asked, sleep(500, "no answer")]);
    };
    // Not at once: on a busy machine a thread may go on for a moment.
    await expect.poll(answer, patience).toBe("no answer");
    const others = talks.filter((_, each) => each !== place).map((talk) => talk.has(key));
    expect(await Promise.all(others)).toEqual(others.map(() => true));
    await heal();
    expect(await asked).toBe(true);
  },

  "server-kill": async ({ key, open, serving, strike }) => {
    const { place, heal } = await strike();
    expect((await serving())[place]).toBe(false);
    await heal();
    const back = await open(place);
    // A member of a group may have to catch up.
    await expect.poll(() => back.has(key), patience).toBe(true);
  },

  "server-empty": async ({ talks, key, open, serving, strike }) => {
    const { place, heal } = await strike();
    const others = talks.map((_, each) => each !== place);
    expect(await serving()).toEqual(others);
    await heal();
    const kept = talks.map(async (_, each) => (await open(each)).has(key));
    expect(await Promise.all(kept)).toEqual(others);
  },

  "clock-jump": async ({ talks, strike }) => {
    const minutesAhead = async (talk: Talk): Promise<number> =>
      // Not Math.round, which knows two zeros.
      Math.floor((((await talk.nowMs?.()) ?? 0) - Date.now()) / 60_000 + 0.5);
    const before = await Promise.all(talks.map(minutesAhead));
    const { place } = await strike();
    const after = await Promise.all(talks.map(minutesAhead));
    expect(after).toEqual(before.map((ahead, each) => (each === place ? ahead + 1 : ahead)));
  },

  promote: async ({ talks, key, open, strike }) => {
    const striking = strike();
    // The link is cut by now, and the primary goes on confirming.
    await talks[0]?.write("unseen");
    const { heal } = await striking;
    const promoted = await open(0);
    expect([await promoted.has(key), await promoted.has("unseen")]).toEqual([true, false]);
    await heal();
  },

  partition: cutsOff,
  "leader-partition": cutsOff,
};

/** One server does not serve; the others do, and it has what they did when it is back. */
async function cutsOff({ talks, key, open, serving, strike }: Scene): Promise<void> {
  const { place, heal } = await strike();
  const others = talks.map((_, each) => each !== place);
  await expect.poll(serving, patience).toEqual(others);
  const missed = `${key}-missed`;
  await (await open(others.indexOf(true))).write(missed);
  expect((await serving())[place]).toBe(false);
  await heal();
  const back = await open(place);
  await expect.poll(() => back.has(missed), patience).toBe(true);
}

/** "redis 3" is the third; whoever is alone has no number. */
const placeOf = (target: string): number => Number(/\d+$/.exec(target)?.[0] ?? 1) - 1;

async function probe(fault: ServerFault, pick: number, url: string, openAt: Open): Promise<void> {
  const opened: Talk[] = [];
  const open = async (place: number): Promise<Talk> => {
    const talk = await openAt(url, place);
    opened.push(talk);
    return talk;
  };
  const places = url.split(",").map((_, place) => place);
  const serves = (place: number): Promise<boolean> =>
    openAt(url, place).then(
      async (talk) => {
        await talk.close();
        return true;
      },
      () => false,
    );
  const serving = (): Promise<readonly boolean[]> => Promise.all(places.map(serves));
  const strike: Scene["strike"] = async () => {
    const { target, heal } = await fault.strike(pick, new Fleet(url, "", noTask));
    const healAll = async (): Promise<void> => {
      await heal?.();
      await expect.poll(serving, patience).toEqual(places.map(() => true));
    };
    return { place: placeOf(target), heal: healAll };
  };
  try {
    const talks = await Promise.all(places.map(open));
    const key = `${fault.kind}-${pick * 100}`;
    for (const talk of talks) await talk.write(key);
    await probes[fault.kind]({ talks, key, open, serving, strike });
  } finally {
    await Promise.all(opened.map(async (talk) => talk.close()));
  }
}

/** Where a pick hits a server of ZooKeeper that follows; others choose by themselves. */
async function followerIn(name: ClusterName, url: string): Promise<number> {
  if (name !== "zookeeper") return 0;
  const places = url.split(",").map((_, place) => place);
  const answers = await Promise.all(
    places.map((place) => askServer(Number(addressOf(url, place).split(":")[1]), "srvr")),
  );
  const follower = answers.findIndex((answer) => answer.includes("Mode: follower"));
  return (follower + 0.5) / places.length;
}

/** Each cluster as it is made here; and etcd as it is made by those who may not make network namespaces. */
const starts: readonly (readonly [what: string, name: ClusterName, start: () => Promise<Cluster>])[] = [
  ...clusterNames.map((name) => [name, name, clusters[name]] as const),
  ["etcd behind proxies", "etcd", () => etcdCluster(() => ProxyCluster.start())],
];

it.each(starts)(
  "%s: each fault does what it is called, and heals",
  async (_what, name, start) => {
    const cluster = await start();
    onTestFinished(() => cluster.stop());
    const [open, ...faults] = stories[name];
    expect([...cluster.faults.map(({ kind }) => kind), ...cluster.impossible.keys()]).toEqual(faults);
    for (const fault of cluster.faults) {
      // The first server and the last; whoever is alone is hit twice, and has to have healed. Of those that elect a leader one that
      // follows is cut off: how long the others of ZooKeeper take to elect another while packets vanish is not for us to say.
      const picks = fault.kind.endsWith("partition") ? [await followerIn(name, cluster.url)] : [0, 0.99];
      for (const pick of picks) await probe(fault, pick, cluster.url, open);
    }
  },
  120_000,
);
