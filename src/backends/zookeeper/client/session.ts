/** A session with an ensemble, as its user sees it: requests about nodes, watches, and its end. It knows nothing of locks. */
import type { Asked } from "./connection.ts";
import { hasZooCode, type ZooError } from "./errors.ts";
import type { JuteReader, JuteWriter } from "./jute.ts";
import { Link } from "./link.ts";
import type { SessionOptions, SessionState } from "./options.ts";
import type { WatchKind, WatchListener } from "./watches.ts";
import {
  type MultiOp,
  type MultiResult,
  type NewNode,
  opOf,
  ops,
  readChildren,
  readCreated,
  readData,
  readMulti,
  readStat,
  type Stat,
  writeMulti,
  writeNewNode,
} from "./wire.ts";

/** What is asked: its kind, its name for messages, and how it is written and its answer read. */
type Question<T> = [
  op: number,
  what: string,
  write: (writer: JuteWriter) => unknown,
  read: (reader: JuteReader) => T,
  refused?: (error: ZooError) => void,
];

/** How often a question is asked whose answers are lost. */
const mostReads = 4;

/** A session; it begins to connect when it is made, and sends requests in the order in which they are made. */
export class ZooSession {
  readonly #link: Link;
  readonly #chroot: string;

  constructor(options: SessionOptions) {
    this.#link = new Link(options);
    this.#chroot = options.chroot;
  }

  get state(): SessionState {
    return this.#link.state;
  }

  /** 0n until the servers have given one. */
  get id(): bigint {
    return this.#link.id;
  }

  /** What the servers have agreed to; until then what was asked for. */
  get sessionMs(): number {
    return this.#link.sessionMs;
  }

  /** Until when the session surely lives, by our clock; in the past if that cannot be said. */
  get provenUntil(): number {
    return this.#link.provenUntil;
  }

  /** Whether the server has told all changes of what was watched on an earlier connection: until then not in their order. */
  get caughtUp(): boolean {
    return this.#link.caughtUp;
  }

  /** Calls back when the state changes. Gives the function that ends it. */
  onState(listener: (state: SessionState) => void): () => void {
    return this.#link.onState(listener);
  }

  /** Makes a node; for a sequential one the path that comes back has its number. */
  create(node: NewNode): Promise<{ path: string; stat: Stat }> {
    const chrooted = { ...node, path: this.#path(node.path) };
    return this.#ask(
      opOf(node),
      `create ${node.path}`,
      (writer) => writeNewNode(writer, chrooted),
      (reader) => this.#unrooted(readCreated(reader)),
    );
  }

  delete(path: string, version = -1): Promise<void> {
    return this.#ask(
      ops.delete,
      `delete ${path}`,
      (writer) => writer.text(this.#path(path)).int(version),
      () => {},
    );
  }

  /** What the server knows of a node, or null. The listener is told of the next change, also of its being made. */
  async exists(path: string, listener?: WatchListener): Promise<Stat | null> {
    try {
      return await this.#read(
        ops.exists,
        `exists ${path}`,
        (writer) => writer.text(this.#path(path)).flag(listener !== undefined),
        (reader) => {
          this.#watch("data", path, listener);
          return readStat(reader);
        },
        (error) => {
          if (hasZooCode(error, "noNode")) this.#watch("missing", path, listener);
        },
      );
    } catch (error) {
      if (hasZooCode(error, "noNode")) return null;
      throw error;
    }
  }

  /** The data of a node. The listener is told of its next change. */
  getData(path: string, listener?: WatchListener): Promise<{ data: Buffer; stat: Stat }> {
    return this.#read(
      ops.getData,
      `data of ${path}`,
      (writer) => writer.text(this.#path(path)).flag(listener !== undefined),
      (reader) => {
        this.#watch("data", path, listener);
        return readData(reader);
      },
    );
  }

  /** The names of a node's children, in no order. The listener is told when one comes or goes. */
  getChildren(path: string, listener?: WatchListener): Promise<{ children: string[]; stat: Stat }> {
    return this.#read(
      ops.getChildren2,
      `children of ${path}`,
      (writer) => writer.text(this.#path(path)).flag(listener !== undefined),
      (reader) => {
        this.#watch("children", path, listener);
        return readChildren(reader);
      },
    );
  }

  /** All steps or none. */
  multi(steps: readonly MultiOp[]): Promise<readonly MultiResult[]> {
    const chrooted = steps.map((step): MultiOp =>
      step.op === "create"
        ? { ...step, node: { ...step.node, path: this.#path(step.node.path) } }
        : { ...step, path: this.#path(step.path) },
    );
    return this.#ask(
      ops.multi,
      "multi",
      (writer) => writeMulti(writer, chrooted),
      (reader) =>
        readMulti(reader).map((result) => (result.op === "create" ? this.#unrooted(result) : result)),
    );
  }

  /** Afterwards our server has seen all that the leader had when it was asked. */
  sync(path: string): Promise<void> {
    return this.#read(
      ops.sync,
      `sync ${path}`,
      (writer) => writer.text(this.#path(path)),
      () => {},
    );
  }

  /** Forgets a listener that was given with a request. */
  unwatch(path: string, listener: WatchListener): void {
    this.#link.watches.remove(this.#path(path), listener);
  }

  /** Ends the session: its ephemeral nodes go at once. A server that cannot be reached is not waited for for long. */
  close(): Promise<void> {
    return this.#link.close();
  }

  /** Ends all that is open here and leaves the session to the servers, which end it after so long, or sooner if they must. */
  leave(lifeMs: number): Promise<void> {
    return this.#link.leave(lifeMs);
  }

  #path(path: string): string {
    return path === "/" && this.#chroot !== "" ? this.#chroot : this.#chroot + path;
  }

  #unrooted<T extends { readonly path: string }>(named: T): T {
    return { ...named, path: named.path.slice(this.#chroot.length) || "/" };
  }

  /** As #ask, for what changes nothing: if the answer is lost with its connection, it is asked again on the next one. */
  async #read<T>(...question: Question<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#ask(...question);
      } catch (error) {
        const answerLost = hasZooCode(error, "connectionLoss") && !error.unsent;
        if (!answerLost || tries >= mostReads) throw error;
      }
    }
  }

  #ask<T>(...[op, what, write, read, refused]: Question<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const asked: Asked = {
        op,
        what,
        write,
        answer: (reader) => resolve(read(reader)),
        fail: (error) => {
          refused?.(error);
          reject(error);
        },
      };
      this.#link.ask(asked);
    });
  }

  #watch(kind: WatchKind, path: string, listener: WatchListener | undefined): void {
    if (listener !== undefined) this.#link.watches.add(kind, this.#path(path), path, listener);
  }
}
