/** The story of every command on a store, told once for all stores: run, wait, refuse, list, show, watch, examine, release. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { CliRig } from "./cli.ts";

/** A store that was started, or given, for these tests. */
export interface StoryStore {
  readonly url: string;
  close(): Promise<unknown>;
}

/** How the story is told on a store. */
export interface StoryOptions {
  readonly start: () => Promise<StoryStore>;
  /** What doctor has to say about it. */
  readonly doctor: RegExp;
  /** Whether the store has to be prepared, and nobody has done so yet. */
  readonly migrates?: boolean;
}

/** Defines the tests. */
export function tellCliStory({ start, doctor, migrates = false }: StoryOptions): void {
  let store: StoryStore;
  let rig: CliRig;

  beforeAll(async () => {
    store = await start();
    rig = new CliRig({ HOLDFAST_STORE: store.url });
  }, 120_000);
  afterAll(async () => {
    await rig.end();
    await store.close();
  });

  if (migrates) {
    it("prepares the store, once", async () => {
      expect((await rig.run(["ls"])).code).toBe(0);
      expect((await rig.run(["migrate"])).stdout).toMatch(/^applied: version 1/);
      expect((await rig.run(["migrate"])).stdout).toBe("everything is up to date\n");
    }, 60_000);
  }

  it("runs one at a time, and whoever waits follows with a higher token", async () => {
    const holder = await rig.holder("cli:story", ["--metadata", "invoice 17"]);
    const [, token = ""] = await holder.until(/held (\d+)/);
    expect((await rig.run(["run", "cli:story", "--if-available", "--", "true"])).code).toBe(75);
    expect((await rig.run(["run", "cli:story", "--wait", "1s", "--", "true"])).code).toBe(75);

    const next = rig.start(["run", "cli:story", "--", "sh", "-c", "echo then $HOLDFAST_TOKEN"]);
    const watch = rig.start(["watch", "cli:", "--every", "50ms"]);
    await watch.until(/waits.*cli:story/);
    const listed = (await rig.run(["ls", "cli:"])).stdout;
    expect(listed).toMatch(
      new RegExp(`cli:story +exclusive +\\S+:${holder.pid} sh +${token} .* 1  invoice 17`),
    );
    expect((await rig.run(["show", "cli:story"])).stdout).toMatch(/holds .* invoice 17\n +waits /);

    expect((await holder.finish()).code).toBe(0);
    const [, later = ""] = await next.until(/then (\d+)/);
    expect(BigInt(later)).toBeGreaterThan(BigInt(token));
    expect((await next.ended).code).toBe(0);
    await watch.until(/left.*cli:story/);
    watch.signal("SIGTERM");
    expect((await watch.ended).code).toBe(0);
    expect((await rig.run(["show", "cli:story"])).stdout).toBe("cli:story is free\n");
  }, 60_000);

  it("examines the store, and releases by force: the command ends, and its program says that the lock was lost", async () => {
    const examined = await rig.run(["doctor"]);
    expect(examined.stdout).toMatch(doctor);
    expect(examined.code).toBe(0);
    const holder = await rig.holder("cli:forced", ["--ttl", "5s"]);
    const [, token = ""] = await holder.until(/held (\d+)/);
    const released = await rig.run(["release", "cli:forced", "--force", "--yes"]);
    expect(released.code).toBe(0);
    expect(released.stdout).toContain(token);
    expect((await holder.ended).code).toBe(76);
  }, 60_000);
}
