/** What doctor says of Redis servers that are not what their URL takes them for, or lack what it asks for: what is seen, and what to do. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ask, startCluster, startRedis, startSentinel } from "../../scripts/lib/redis-servers.mjs";
import { type CliEnded, CliRig } from "../helpers/cli.ts";

let pair: Awaited<ReturnType<typeof startSentinel>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
let rig: CliRig;

beforeAll(async () => {
  [pair, cluster] = await Promise.all([startSentinel(), startCluster()]);
});
afterAll(async () => {
  const all = [...pair.servers, ...pair.sentinels, ...cluster.servers];
  await Promise.all(all.map(({ server }) => server.remove()));
});
beforeEach(() => {
  rig = new CliRig();
});
afterEach(() => rig.end());

const at = (servers: readonly { port: number }[], index = 0): string => `127.0.0.1:${servers[index]?.port}`;

function doctor(url: string): Promise<CliEnded> {
  return rig.run(["doctor", "--store", url]);
}

it("a replica: the primary is to be connected to", async () => {
  const { code, stdout } = await doctor(`redis://${at(pair.servers, 1)}`);
  expect(stdout).toMatch(
    /problem +role: replica\n +to do: connect to the primary, or by redis\+sentinel:\/\/ or redis\+cluster:\/\//,
  );
  expect(code).toBe(1);
});

it("a replica that nobody waits for: the option replicas is to be set", async () => {
  const { code, stdout } = await doctor(`redis://${at(pair.servers)}`);
  expect(stdout).toMatch(
    /warning +replication: 1 replica, none has to confirm\n +to do: set the option replicas: a fail-over forgets/,
  );
  expect(code).toBe(0);
});

it("as many replicas as must confirm: fine", async () => {
  const { code, stdout } = await doctor(`redis://${at(pair.servers)}?replicas=1`);
  expect(stdout).toMatch(/ok +replication: 1 replica\n/);
  expect(code).toBe(0);
});

it("fewer replicas than must confirm: more are to be attached, or fewer asked for", async () => {
  const { code, stdout } = await doctor(`redis://${at(pair.servers)}?replicas=2`);
  expect(stdout).toMatch(
    /problem +replication: 1 replica\n +to do: attach more replicas, or ask for fewer with the option replicas: 2 must confirm, so no lock will be granted\n/,
  );
  expect(code).toBe(1);
});

describe.each(["ioredis", "redis"])("with %s", (library) => {
  it("one node of a cluster: redis+cluster:// is to be used", async () => {
    const { code, stdout } = await doctor(`redis://${at(cluster.servers)}?client=${library}`);
    expect(stdout).toMatch(
      /problem +cluster: one node of a cluster, or a proxy in front of it\n +to do: connect by redis\+cluster:\/\//,
    );
    expect(code).toBe(1);
  });

  it("a server that is taken for a cluster: redis:// is to be used", async () => {
    const { code, stderr } = await doctor(
      `redis+cluster://${at(pair.servers)}?client=${library}&deadlineMs=1500`,
    );
    expect(stderr).toMatch(/this server is not part of a cluster: use redis:\/\//);
    expect(code).toBe(69);
  });

  it("a server that is taken for a Sentinel: redis://, or the address of a Sentinel, is to be used", async () => {
    const { code, stderr } = await doctor(
      `redis+sentinel://${at(pair.servers)}/primary?client=${library}&deadlineMs=1500`,
    );
    expect(stderr).toMatch(
      /this server is no Sentinel: use redis:\/\/ for it, or give the address of a Sentinel/,
    );
    expect(code).toBe(69);
  });
});

describe("a store that is not there", () => {
  const nowhere = "redis://127.0.0.1:1?deadlineMs=1100";

  it("doctor does not send people to doctor", async () => {
    const { code, stderr } = await doctor(nowhere);
    expect(stderr).toMatch(/ECONNREFUSED.*\n {2}does it run, is the address right, may you use it\? /);
    expect(stderr).not.toContain("holdfast doctor");
    expect(code).toBe(69);
  });

  it("all others do", async () => {
    const { stderr } = await rig.run(["ls", "--store", nowhere]);
    expect(stderr).toMatch(/may you use it\? holdfast doctor looks at it\n/);
  });
});

it.each([["ls"], ["doctor"], ["verify"], ["run", "x"]])(
  "an option that a URL has not: %s says which there are, and where they are explained",
  async (...words) => {
    const url = "redis://127.0.0.1:1?foo=bar";
    const rest = words[0] === "run" ? ["--", "true"] : [];
    const { code, stderr } = await rig.run([...words, "--store", url, ...rest]);
    expect(stderr).toMatch(
      /no option "foo"; it has prefix, deadlineMs, [^]*\n {2}docs\/backends has a page for each store/,
    );
    expect(stderr).not.toContain("--help");
    expect(code).toBe(64);
  },
);

it("a key that is somebody else's: the lock, the key, and what to do", async () => {
  const { server, port } = await startRedis();
  await ask(port, "rpush", "holdfast:{foreign}", "x");
  const { code, stderr } = await rig.run([
    "run",
    "foreign",
    "--store",
    `redis://127.0.0.1:${port}`,
    "--",
    "true",
  ]);
  await server.remove();
  expect(stderr).toMatch(
    /lock "foreign": somebody else uses the key holdfast:\{foreign\}, or one that starts with it: remove that key, or give another prefix/,
  );
  expect(code).toBe(69);
});
