/**
 * The line between the processes that share a file: one local socket a process, on which others tell it that it is its
 * turn, and by whose closing they learn that it has ended. All of it is a hint: a message may be lost.
 */
import { createHash } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { isGone, nameOfThisProcess } from "./machine.ts";

/** What the hub tells the store. */
export interface HubListener {
  /** A line that another process has sent. */
  onMessage(line: string): void;
  /** A process that is kept in touch with has ended, closed its hub, or cannot be reached. */
  onLost(process: string): void;
}

/** Another process that is kept in touch with. */
interface Peer {
  /** How many want it. */
  users: number;
  failures: number;
  timer: NodeJS.Timeout | null;
}

/** The longest pause between two attempts to reach a process, in milliseconds: the fallback where sockets fail. */
const longestPauseMs = 1_000;

/** How long a path of a socket may be, in bytes: systems differ between 104 and 108. */
const longestAddress = 100;

/** The hub of this process for one file. */
export class Hub {
  readonly name: string = nameOfThisProcess();
  readonly #folder: string;
  readonly #listener: HubListener;
  readonly #peers = new Map<string, Peer>();
  /** The sockets that lead to each process; those that others opened count, too. */
  readonly #sockets = new Map<string, Socket>();
  readonly #open = new Set<Socket>();
  #server: Server | null = null;
  #closed = false;

  constructor(file: string, listener: HubListener) {
    this.#folder = folderFor(file, this.name);
    this.#listener = listener;
  }

  /** Begins to listen: once this process has an entry that others may wait for. */
  start(): void {
    if (this.#server !== null || this.#closed) return;
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.on("error", () => {});
    this.#server.unref();
    try {
      makePrivate(this.#folder);
      removeStale(this.#folder);
      this.#server.listen(addressIn(this.#folder, this.name));
    } catch {
      // Nobody can be told then: waiters look again when the entry ahead of them expires.
    }
  }

  /** Whether a socket to a process stands, so that its end will be heard. */
  isInTouch(process: string): boolean {
    return this.#sockets.get(process)?.readyState === "open";
  }

  /** Sends a line to another process. */
  send(process: string, line: string): void {
    (this.#sockets.get(process) ?? this.#connect(process)).write(`${line}\n`);
  }

  /** Stays in touch with a process, so that its end is heard, until the function that this gives is called. */
  keep(process: string): () => void {
    const peer = this.#peers.get(process) ?? { users: 0, failures: 0, timer: null };
    this.#peers.set(process, peer);
    peer.users += 1;
    if (!this.#sockets.has(process) && peer.timer === null) this.#connect(process);
    let kept = true;
    return () => {
      if (!kept) return;
      kept = false;
      peer.users -= 1;
      if (peer.users > 0) return;
      if (peer.timer !== null) clearTimeout(peer.timer);
      if (this.#peers.get(process) === peer) this.#peers.delete(process);
    };
  }

  /** Forgets a process that has ended. */
  forget(process: string): void {
    this.#sockets.get(process)?.destroy();
    this.#sockets.delete(process);
    const peer = this.#peers.get(process);
    if (peer !== undefined && peer.timer !== null) clearTimeout(peer.timer);
    this.#peers.delete(process);
    if (process !== this.name) removeSocket(addressIn(this.#folder, process));
  }

  /** Ends it all, after what was sent has gone out. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { timer } of this.#peers.values()) if (timer !== null) clearTimeout(timer);
    this.#peers.clear();
    this.#server?.close();
    await Promise.all([...this.#open].map(flushed));
    this.#sockets.clear();
    removeSocket(addressIn(this.#folder, this.name));
  }

  #connect(process: string): Socket {
    const socket = createConnection(addressIn(this.#folder, process));
    socket.write(`${this.name}\n`);
    this.#serve(socket, process);
    return socket;
  }

  /** The first line of whoever connects is its name. */
  #accept(socket: Socket): void {
    if (this.#closed) return void socket.destroy();
    this.#serve(socket, null);
  }

  #serve(socket: Socket, process: string | null): void {
    let name = process;
    let rest = "";
    if (name !== null) this.#sockets.set(name, socket);
    this.#open.add(socket);
    socket
      .unref()
      .setEncoding("utf8")
      .on("error", () => {});
    socket.on("connect", () => {
      const peer = name === null ? undefined : this.#peers.get(name);
      if (peer !== undefined) peer.failures = 0;
    });
    socket.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (name !== null) this.#listener.onMessage(line);
        else {
          name = line;
          if (!this.#sockets.has(name)) this.#sockets.set(name, socket);
        }
      }
    });
    socket.on("close", () => {
      this.#open.delete(socket);
      if (name !== null) this.#ended(name, socket);
    });
  }

  #ended(process: string, socket: Socket): void {
    if (this.#sockets.get(process) === socket) this.#sockets.delete(process);
    if (this.#closed) return;
    const peer = this.#peers.get(process);
    if (peer !== undefined && peer.timer === null) {
      // The socket closes a moment before the process is gone: soon again at first, then less and less often.
      const pauseMs = Math.min(longestPauseMs, 2 ** peer.failures);
      peer.failures += 1;
      peer.timer = setTimeout(() => {
        peer.timer = null;
        if (peer.users === 0 || this.#sockets.has(process)) return;
        this.#connect(process);
      }, pauseMs);
      peer.timer.unref();
    }
    this.#listener.onLost(process);
  }
}

/** Resolves when what was written has left this process, or cannot. */
function flushed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.ref().on("close", () => resolve());
    // An answer is not waited for: what was written is with the system by then.
    socket.end(() => socket.destroy());
  });
}

/** Beside the file, or where the path would be too long, under /tmp: all who use the file must find the same. */
function folderFor(file: string, name: string): string {
  const beside = `${file}-hubs`;
  if (process.platform === "win32" || Buffer.byteLength(join(beside, name)) <= longestAddress) return beside;
  const digest = createHash("sha256").update(file).digest("hex").slice(0, 24);
  return join("/tmp", `holdfast-hubs-${process.getuid?.() ?? 0}`, digest);
}

function addressIn(folder: string, name: string): string {
  return process.platform === "win32"
    ? `\\\\.\\pipe\\${folder.replace(/[\\/:]/g, "-")}-${name}`
    : join(folder, name);
}

/** Makes a directory that only this user can use; refuses one that belongs to somebody else. */
function makePrivate(folder: string): void {
  if (process.platform === "win32") return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const seen = lstatSync(folder);
  if (!seen.isDirectory() || (seen.uid !== process.getuid?.() && process.getuid?.() !== 0)) {
    throw new Error(`${folder} belongs to somebody else`);
  }
  if ((seen.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

function removeStale(folder: string): void {
  if (process.platform === "win32") return;
  for (const name of readdirSync(folder)) if (isGone(name)) removeSocket(join(folder, name));
}

function removeSocket(address: string): void {
  if (process.platform !== "win32") rmSync(address, { force: true });
}
