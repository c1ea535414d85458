/** What throwaway servers have in common: finding programs, running them as another user, asking whether they serve. */
import { execFile, spawn } from "node:child_process";
import { access, readdir } from "node:fs/promises";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Whom to run a program as; nobody in particular: the one who runs this process. */
export interface User {
  readonly uid?: number;
  readonly gid?: number;
}

/** The user that a server has to run as: the named one if we are root. */
export async function userOf(name: string): Promise<User> {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = await Promise.all([execute("id", ["-u", name]), execute("id", ["-g", name])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

/** The path of a program: on PATH, or in one of the folders, where `*` stands for one folder and the last one wins. */
export async function locate(program: string, folders: readonly string[] = []): Promise<string> {
  const onPath = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  const others = await Promise.all(folders.map(expand));
  for (const folder of [...others.flat(), ...onPath]) {
    const path = join(folder, program);
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  throw new Error(`${program} is not installed`);
}

async function expand(pattern: string): Promise<readonly string[]> {
  const [before = "", after] = pattern.split("*");
  if (after === undefined) return [pattern];
  const names = await readdir(before).catch(() => []);
  return names.toSorted((a, b) => Number(b) - Number(a)).map((name) => before + name + after);
}

/** Runs a program to its end as a user, in a folder. */
export function mustRunAs(
  user: User,
  folder: string,
  command: string,
  args: readonly string[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, HOME: folder, LC_ALL: "C" };
    const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"], ...user });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ended with code ${code}\n${output}`));
    });
  });
}

/** Rejects unless a server sends something, at once or after a greeting, that begins as it should. */
export function answers(port: number, greeting?: Buffer, beginning = ""): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => greeting && socket.write(greeting));
    socket.setTimeout(1_000, () => socket.destroy(new Error("no answer")));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("closed")));
    socket.once("data", (chunk) => {
      if (chunk.toString("latin1").startsWith(beginning)) resolve();
      else reject(new Error(chunk.toString()));
      socket.destroy();
    });
  });
}

/** The first line that a program prints about its version. */
export async function versionOf(command: string, args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await execute(command, args);
  return (stdout || stderr).split("\n", 1)[0]?.trim() ?? "";
}
