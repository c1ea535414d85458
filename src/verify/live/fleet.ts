/** The processes of a run: clients, each with a way of its own to the store, and the two resources. Breaking them is left to nemesis.ts. */
import { type ChildProcess, fork } from "node:child_process";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endWithUs } from "../servers/server-process.ts";
import type { ClientTask, News, Order } from "./client-process.ts";
import { RemoteResource } from "./resource-client.ts";
import { Route } from "./routes.ts";

/** A module of this folder, compiled or not. */
function moduleOf(name: string): string {
  return fileURLToPath(new URL(`./${name}${extname(import.meta.url)}`, import.meta.url));
}

function start(module: string, args: readonly string[] = []): ChildProcess {
  const child = fork(moduleOf(module), args, {
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    execArgv: [],
    // What the store is not fit for is said once, by the parent.
    env: { ...process.env, NODE_NO_WARNINGS: "1" },
  });
  endWithUs(child);
  return child;
}

/** What a client says when it has ended. */
export type Ended = Extract<News, { news: "ended" }>;

/** What a client last said of itself. */
export interface Measured {
  readonly atMs: number;
  readonly rss: number;
  readonly heap: number;
  readonly grants: number;
}

/** How often a client that is to end is asked for a sign of life, in milliseconds. */
const signMs = 500;

/** How long it may give none in all: then it does nothing any more, however busy the machine is. */
const longestSilenceMs = 60_000;

/** A client in a process of its own. */
export class LiveClient {
  readonly proc: string;
  readonly file: string;
  readonly route: Route;
  /** Resolves when its users are at work; rejects if it ends before. */
  readonly started: Promise<void>;
  /** Resolves when it has told the stories of the calm opening, or has ended. */
  readonly settled: Promise<void>;
  /** What it said when it ended; null if it died. */
  readonly ended: Promise<Ended | null>;
  /** When it was killed, on the clock of the history. */
  killedAt: bigint | null = null;
  measured: Measured = { atMs: 0, rss: 0, heap: 0, grants: 0 };
  readonly samples: Measured[] = [];
  readonly #child: ChildProcess;
  #onWoke: () => void = () => {};

  constructor(task: ClientTask, route: Route) {
    this.proc = task.proc;
    this.file = task.file;
    this.route = route;
    const child = start("client-process");
    this.#child = child;
    let said: Ended | null = null;
    this.started = new Promise((resolve, reject) => {
      child.on("message", (news: News) => {
        if (news.news === "started") resolve();
        if (news.news === "ended") {
          said = news;
          child.disconnect();
        }
        this.#hear(news);
      });
      child.on("error", reject);
      child.on("exit", (code) =>
        reject(new Error(`the client ${task.proc} ended with code ${code} before it was at work`)),
      );
    });
    this.settled = new Promise((resolve) => {
      child.on("message", (news: News) => {
        if (news.news === "settled") resolve();
      });
      child.on("exit", () => resolve());
    });
    // Whoever waits for it hears of it; others need not.
    this.started.catch(() => {});
    this.ended = new Promise((resolve) => child.on("exit", () => resolve(said)));
    this.#tell({ order: "start", task });
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Resolves when its event loop goes on. */
  hang(ms: number): Promise<void> {
    this.#tell({ order: "hang", ms });
    return new Promise((resolve) => {
      this.#onWoke = resolve;
      this.#child.once("exit", () => resolve());
    });
  }

  async kill(): Promise<void> {
    this.killedAt ??= process.hrtime.bigint();
    this.#child.kill("SIGKILL");
    await this.ended;
  }

  measure(): void {
    this.#tell({ order: "measure" });
  }

  finish(): void {
    this.#tell({ order: "finish" });
  }

  /** Whether it ends in time. Time in which it gives no sign of life is not counted: a busy machine may have none for it. */
  async endsWithin(ms: number): Promise<boolean> {
    let [livedMs, silentMs] = [0, 0];
    while (livedMs < ms && silentMs < longestSilenceMs) {
      const { atMs } = this.measured;
      this.measure();
      if (await endsWithin(signMs, this.ended)) return true;
      if (this.measured.atMs > atMs) livedMs += signMs;
      else silentMs += signMs;
    }
    return false;
  }

  #hear(news: News): void {
    if (news.news === "woke") this.#onWoke();
    if (news.news !== "measured") return;
    const { rss, heap, grants } = news;
    this.measured = { atMs: performance.now(), rss, heap, grants };
    this.samples.push(this.measured);
  }

  #tell(order: Order): void {
    if (this.alive && this.#child.connected) this.#child.send(order, () => {});
  }
}

/** A resource in a process of its own. */
export interface LiveResource {
  readonly port: number;
  readonly file: string;
  readonly connection: RemoteResource;
  stop(): Promise<void>;
}

/** Starts a resource, fenced or not. */
export async function startResource(folder: string, kind: "fenced" | "unfenced"): Promise<LiveResource> {
  const file = join(folder, `${kind}.jsonl`);
  const child = start("resource-process", [kind, file]);
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    child.once("message", (said: { port: number }) => resolve(said.port));
    child.once("error", reject);
    child.once("exit", () => reject(new Error("a resource ended before it served")));
  });
  const connection = new RemoteResource(port);
  const stop = async (): Promise<void> => {
    connection.close();
    child.kill("SIGKILL");
    await ended;
  };
  return { port, file, connection, stop };
}

/** What is the same for all clients. */
export type CommonTask = Omit<ClientTask, "proc" | "url" | "file" | "stream" | "place">;

/** All clients: so many at a time, and those that were replaced. */
export class Fleet {
  /** Those that are there now. */
  readonly current: LiveClient[] = [];
  /** All that ever were. */
  readonly all: LiveClient[] = [];
  readonly #url: string;
  readonly #folder: string;
  readonly #common: CommonTask;
  #targets: Parameters<Route["leadTo"]>[0] | null = null;

  constructor(url: string, folder: string, common: CommonTask) {
    this.#url = url;
    this.#folder = folder;
    this.#common = common;
  }

  /** Puts a new client into a place; whoever was there has ended. */
  async join(place: number): Promise<LiveClient> {
    const before = this.all.filter(({ proc }) => proc.split("-")[0] === `c${place + 1}`).length;
    const proc = before === 0 ? `c${place + 1}` : `c${place + 1}-${before + 1}`;
    const route = await Route.open(this.#url);
    if (this.#targets !== null) route.leadTo(this.#targets);
    const file = join(this.#folder, `${proc}.jsonl`);
    const joined = this.all.length;
    const task: ClientTask = {
      ...this.#common,
      proc,
      url: route.url,
      file,
      stream: 100 + joined,
      place: joined,
      // Whoever comes later comes into the faults.
      calmMs: before === 0 ? this.#common.calmMs : 0,
    };
    const client = new LiveClient(task, route);
    this.current[place] = client;
    this.all.push(client);
    return client;
  }

  /** All clients are led to other servers from now on. */
  leadTo(targets: Parameters<Route["leadTo"]>[0]): void {
    this.#targets = targets;
    for (const { route } of this.current) route.leadTo(targets);
  }

  /** Lets all end by themselves; those that do not within the bound are killed, and given. */
  async finish(withinMs: number): Promise<readonly LiveClient[]> {
    for (const client of this.current) client.finish();
    const late: LiveClient[] = [];
    await Promise.all(
      this.current.map(async (client) => {
        if (await client.endsWithin(withinMs)) return;
        late.push(client);
        client.resume();
        await killQuietly(client);
      }),
    );
    return late;
  }

  /** Ends all that is left of it. */
  async end(): Promise<void> {
    await Promise.all(this.all.map((client) => killQuietly(client)));
    await Promise.all(this.all.map(({ route }) => route.close()));
  }
}

/** Ends a client without calling it a fault. */
async function killQuietly(client: LiveClient): Promise<void> {
  const { killedAt } = client;
  await client.kill();
  client.killedAt = killedAt;
}

/** Whether something ends in time. */
export function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const end = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(end, end);
  });
}
