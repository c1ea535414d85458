/** What `holdfast doctor` sees of an ensemble: asks each server for its state, as far as the servers tell, and changes nothing. */
import type { ConnectionOptions } from "node:tls";
import type { Finding } from "../../core/backend.ts";
import { type Acl, type Host, openSocket, type ZooSession } from "./client/index.ts";

/** What is looked at. */
export interface Examined {
  readonly hosts: readonly Host[];
  readonly tls: ConnectionOptions | undefined;
  readonly tickMs: number;
  readonly acl: readonly Acl[];
  readonly sessions: readonly ZooSession[];
}

/** How long a server may take to answer. */
const answerMs = 2_000;

interface Answer {
  readonly server: string;
  readonly state: string;
  readonly settings: string;
}

/** Looks at all servers that were named. */
export async function examineEnsemble(examined: Examined): Promise<readonly Finding[]> {
  const answers = await Promise.all(
    examined.hosts.map(async (host): Promise<Answer> => {
      const server = `${host.host}:${host.port}`;
      const [state, settings] = await Promise.all(
        ["srvr", "conf"].map((word) => askServer(host, examined.tls, word).catch(String)),
      );
      return { server, state: state ?? "", settings: settings ?? "" };
    }),
  );
  return [
    ...answers.map(serverFinding),
    ...modesFinding(answers),
    ...answers.flatMap((answer) => tickFinding(answer, examined.tickMs)),
    ...examined.sessions.map(sessionFinding),
    aclFinding(examined.acl),
  ];
}

function serverFinding({ server, state }: Answer): Finding {
  const version = /^Zookeeper version: (\d+)\.(\d+)\.?(\d*)/m.exec(state);
  const mode = /^Mode: (\w+)/m.exec(state)?.[1];
  const about = `server ${server}`;
  if (version === null || mode === undefined) {
    const seen = `it does not tell its state: ${firstLine(state)}`;
    return {
      level: "warning",
      about,
      seen,
      todo: "see whether it runs; allow srvr in 4lw.commands.whitelist",
    };
  }
  const [, major, minor, patch] = version;
  const seen = `ZooKeeper ${major}.${minor}.${patch}, ${mode}`;
  const old = Number(major) < 3 || (Number(major) === 3 && Number(minor) < 6);
  return old
    ? { level: "problem", about, seen, todo: "use ZooKeeper 3.6 or newer" }
    : { level: "ok", about, seen };
}

function modesFinding(answers: readonly Answer[]): readonly Finding[] {
  const modes = answers.map(({ state }) => /^Mode: (\w+)/m.exec(state)?.[1] ?? "silent");
  const about = "ensemble";
  if (modes.every((mode) => mode === "standalone")) {
    const todo = "use an ensemble of three or five";
    return [{ level: "warning", about, seen: "a server alone: when it is down, so are the locks", todo }];
  }
  const leaders = modes.filter((mode) => mode === "leader").length;
  const seen = modes.join(", ");
  return [
    leaders > 1
      ? { level: "problem", about, seen: `${leaders} leaders: ${seen}` }
      : { level: "ok", about, seen },
  ];
}

function tickFinding({ server, settings }: Answer, tickMs: number): readonly Finding[] {
  const number = (key: string): number => Number(new RegExp(`^${key}=(\\d+)`, "m").exec(settings)?.[1]);
  const about = `times of ${server}`;
  const tick = number("tickTime");
  if (Number.isNaN(tick)) return [];
  const seen = `a tick of ${tick} ms, sessions of ${number("minSessionTimeout")} to ${number("maxSessionTimeout")} ms`;
  if (tick <= tickMs) return [{ level: "ok", about, seen }];
  const todo = `give tickMs: ${tick}, so that the time that a follower may report late is allowed for`;
  return [{ level: "warning", about, seen, todo }];
}

function sessionFinding({ id, sessionMs, state }: ZooSession): Finding {
  const about = `session 0x${BigInt.asUintN(64, id).toString(16)}`;
  return { level: "ok", about, seen: `${state}; the servers agreed to ${sessionMs} ms` };
}

function aclFinding(acl: readonly Acl[]): Finding {
  const about = "access";
  const open = acl.some(({ scheme, id }) => scheme === "world" && id === "anyone");
  if (!open) return { level: "ok", about, seen: acl.map(({ scheme }) => scheme).join(", ") };
  const seen = "whoever reaches the servers may take out entries";
  return { level: "warning", about, seen, todo: "give auth, unless the network keeps others away" };
}

function firstLine(text: string): string {
  return JSON.stringify(text.split("\n")[0]?.slice(0, 100) ?? "");
}

function askServer(host: Host, tls: ConnectionOptions | undefined, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = openSocket(host, tls, () => socket.write(word));
    let text = "";
    socket.setTimeout(answerMs, () => socket.destroy(new Error("no answer")));
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}
