/** A Java process that uses Curator's locks, as a test talks to it. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { javaFlags } from "../../scripts/lib/zookeeper-for-tests.mjs";
import { LineProcess } from "./line-process.ts";

const jars = [
  "curator-recipes",
  "curator-framework",
  "curator-client",
  "zookeeper",
  "zookeeper-jute",
  "guava",
  "slf4j-api",
  "slf4j-simple",
].map((name) => `/usr/share/java/${name}.jar`);

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
    const source = fileURLToPath(new URL("java/CuratorPeer.java", import.meta.url));
    await promisify(execFile)("javac", ["-d", folder, "-cp", jars.join(":"), source]);
    return new CuratorProgram(folder);
  }

  /** Starts a process with a lock at a path. */
  async start(hosts: string, sessionMs: number, path: string, kind: CuratorKind): Promise<LineProcess> {
    const args = [
      ...javaFlags,
      "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
      "-cp",
      [this.#folder, ...jars].join(":"),
    ];
    const peer = new LineProcess("java", [...args, "CuratorPeer", hosts, String(sessionMs), path, kind]);
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
