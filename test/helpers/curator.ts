/** A Java process that uses Curator's locks, as a test talks to it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCurator, curatorArguments, javaFlags } from "../../scripts/lib/zookeeper-for-tests.mjs";
import { LineProcess } from "./line-process.ts";

/** Which of Curator's locks. */
export type CuratorKind = "mutex" | "read" | "write";

/** The program, compiled once for a test file. */
export class CuratorProgram {
  readonly #folder: string;
  readonly #peers: LineProcess[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async compile(): Promise<CuratorProgram> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-curator-"));
    await compileCurator(new URL("java/CuratorPeer.java", import.meta.url), folder);
    return new CuratorProgram(folder);
  }

  /** Starts a process with a lock at a path. */
  async start(hosts: string, sessionMs: number, path: string, kind: CuratorKind): Promise<LineProcess> {
    const args = [...javaFlags, ...curatorArguments(this.#folder, "CuratorPeer")];
    const peer = new LineProcess("java", [...args, hosts, String(sessionMs), path, kind]);
    this.#peers.push(peer);
    await peer.hear();
    return peer;
  }

  /** Ends all processes and removes what was compiled. */
  async close(): Promise<void> {
    for (const peer of this.#peers) peer.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
