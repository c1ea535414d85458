/** A process of its own that takes one lock on ZooKeeper and holds it until it is told, paused or killed. */
import type { Build } from "./child.ts";
import { LineProcess } from "./line-process.ts";

/** What such a process is started with. */
export interface HolderOptions {
  /** Options of zookeeperBackend. */
  readonly backend: Readonly<Record<string, unknown>>;
  readonly lock: string;
  readonly ttl: number;
}

/** Starts it. It says "granted" with its token, or "refused" and why; "lost" when its signal aborts; and answers "held" and "release". */
export function startHolder(build: Build, { backend, lock, ttl }: HolderOptions): LineProcess {
  const script = `
    import { createInterface } from "node:readline";
    import { connect } from "${build.address("index")}";
    import { zookeeperBackend } from "${build.address("backends/zookeeper/index")}";
    const locks = await connect(zookeeperBackend(${JSON.stringify(backend)}));
    const asking = locks.acquire(${JSON.stringify(lock)}, { ttl: ${ttl} });
    asking.catch((error) => console.log("refused " + error.code + " " + error.message));
    const lock = await asking;
    lock.signal.addEventListener("abort", () => console.log("lost"));
    console.log("granted " + lock.token);
    for await (const order of createInterface({ input: process.stdin })) {
      if (order === "held") console.log("held " + lock.held);
      else if (order === "release") console.log(await lock.release());
    }`;
  return new LineProcess(process.execPath, ["--input-type=module", "-e", script]);
}
