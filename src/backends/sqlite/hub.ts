/**
 * The line between the processes that share a file: one local socket a process, on which others tell it that it is its
 * turn, and by whose closing they learn that it has ended. All of it is a hint: a message may be lost.
 */
import { createHash } from "node:crypto";
import { chmodSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { makeFolders } from "../../core/folders.ts";
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

/** How much is read from a socket at a time, in bytes: more than a message has, mostly. */
const bufferSize = 4096;

/** How long a path of a socket may be, in bytes: systems differ between 104 and 108. */
const longestAddress = 100;

/** Where sockets are whose paths would be too long beside their file; a directory for each user. */
const sharedFolder = "/tmp/holdfast-hubs-";

/** The hub of this process for one file. */
export class Hub {
  readonly name: string = nameOfThisProcess();
  readonly #folder: string;
  readonly #listener: HubListener;
  readonly #peers = new Map<string, Peer>();
  /**
   * The sockets that we opened, by process, and those that others opened. A message goes on one that its reader has
   * opened, if there is one: such a socket can be read without a stream, which a process that slept takes long to run.
   */
  readonly #opened = new Map<string, Socket>();
  readonly #accepted = new Map<string, Socket>();
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
      if (this.#folder.startsWith(sharedFolder)) makeOwn(this.#folder);
      else makePrivate(this.#folder);
      removeStale(this.#folder);
      this.#server.listen(addressIn(this.#folder, this.name));
    } catch {
      // Nobody can be told then: waiters look again when the entry ahead of them expires.
    }
  }

  /** Whether a socket to a process stands, so that its end will be heard. */
  isInTouch(process: string): boolean {
    return isOpen(this.#opened.get(process)) || isOpen(this.#accepted.get(process));
  }

  /** Sends a line to another process. */
  send(process: string, line: string): void {
    const socket = this.#accepted.get(process) ?? this.#opened.get(process) ?? this.#connect(process);
    socket.write(`${line}\n`, "latin1");
  }

  /**
   * Stays in touch with a process, so that its end is heard, until the function that this gives is called. That keeps our own
   * process alive: somebody here waits for what another process will do.
   */
  keep(process: string): () => void {
    const peer = this.#peers.get(process) ?? { users: 0, failures: 0, timer: null };
    this.#peers.set(process, peer);
    peer.users += 1;
    const socket = this.#opened.get(process);
    if (socket !== undefined) socket.ref();
    else if (peer.timer === null) this.#connect(process);
    let kept = true;
    return () => {
      if (!kept) return;
      kept = false;
      peer.users -= 1;
      if (peer.users > 0) return;
      if (peer.timer !== null) clearTimeout(peer.timer);
      if (this.#peers.get(process) !== peer) return;
      this.#peers.delete(process);
      this.#opened.get(process)?.unref();
    };
  }

  /** Forgets a process that has ended. */
  forget(process: string): void {
    for (const sockets of [this.#opened, this.#accepted]) {
      sockets.get(process)?.destroy();
      sockets.delete(process);
    }
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
    this.#opened.clear();
    this.#accepted.clear();
    removeSocket(addressIn(this.#folder, this.name));
  }

  #connect(process: string): Socket {
    const take = lineReader((line) => this.#listener.onMessage(line));
    const buffer = Buffer.alloc(bufferSize);
    const callback = (bytes: number): boolean => {
      take(buffer.toString("latin1", 0, bytes));
      return true;
    };
    const socket = createConnection({
      path: addressIn(this.#folder, process),
      onread: { buffer, callback },
    });
    socket.write(`${this.name}\n`);
    this.#opened.set(process, socket);
    this.#serve(socket);
    if (this.#peers.has(process)) socket.ref();
    socket.on("connect", () => {
      const peer = this.#peers.get(process);
      if (peer !== undefined) peer.failures = 0;
    });
    socket.on("close", () => this.#ended(process, this.#opened, socket));
    return socket;
  }

  /** The first line of whoever connects is its name. */
  #accept(socket: Socket): void {
    if (this.#closed) return void socket.destroy();
    let name: string | null = null;
    const take = lineReader((line) => {
      if (name !== null) return this.#listener.onMessage(line);
      name = line;
      this.#accepted.set(name, socket);
    });
    this.#serve(socket);
    socket.setEncoding("latin1").on("data", take);
    socket.on("close", () => {
      if (name !== null) this.#ended(name, this.#accepted, socket);
    });
  }

  #serve(socket: Socket): void {
    this.#open.add(socket);
    socket.unref().on("error", () => {});
    socket.on("close", () => this.#open.delete(socket));
  }

  #ended(process: string, sockets: Map<string, Socket>, socket: Socket): void {
    if (sockets.get(process) === socket) sockets.delete(process);
    if (this.#closed) return;
    const peer = this.#peers.get(process);
    if (peer !== undefined && peer.timer === null && !this.#opened.has(process)) {
      // The socket closes a moment before the process is gone: soon again at first, then less and less often.
      const pauseMs = Math.min(longestPauseMs, 2 ** peer.failures);
      peer.failures += 1;
      peer.timer = setTimeout(() => {
        peer.timer = null;
        if (peer.users === 0 || this.#opened.has(process)) return;
        this.#connect(process);
      }, pauseMs);
    }
    this.#listener.onLost(process);
  }
}

function isOpen(socket: Socket | undefined): boolean {
  return socket?.readyState === "open";
}

/** Gives a function that takes text as it arrives, and calls back with each whole line. */
function lineReader(onLine: (line: string) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    rest += text;
    let start = 0;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n", start)) {
      onLine(rest.slice(start, end));
      start = end + 1;
    }
    rest = rest.slice(start);
  };
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
  return join(`${sharedFolder}${process.getuid?.() ?? 0}`, digest);
}

function addressIn(folder: string, name: string): string {
  return process.platform === "win32"
    ? `\\\\.\\pipe\\${folder.replace(/[\\/:]/g, "-")}-${name}`
    : join(folder, name);
}

/**
 * Makes a directory, and the one it is in, where everybody may make one: somebody else who had been first could put sockets
 * of their own there, and say to waiters that it is their turn.
 */
export function makeOwn(folder: string): void {
  for (const each of [dirname(folder), folder]) {
    makePrivate(each);
    if (lstatSync(each).uid !== process.getuid?.()) throw new Error(`${each} belongs to somebody else`);
  }
}

/** Makes a directory that only this user can use; refuses one that belongs to somebody else. */
function makePrivate(folder: string): void {
  if (process.platform === "win32") return;
  makeFolders(folder, 0o700);
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
  if (process.platform === "win32") return;
  try {
    rmSync(address, { force: true });
  } catch {
    // Where no socket could be made there is none, and one that stays behind is in nobody's way.
  }
}
