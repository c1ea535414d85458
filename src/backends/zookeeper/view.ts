/** What the nodes of one queue say: who is in it, and what is ahead of an entry. It changes nothing in the store. */
import type { Ahead } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { hasZooCode, type ZooSession } from "./client/index.ts";
import { type NodeEntry, readEntry } from "./data.ts";
import { Neighbours } from "./neighbours.ts";
import { entriesAmong, guidOf, type Node, parseNode, usedUp } from "./nodes.ts";
import type { Own } from "./own.ts";
import type { OwnEntries } from "./owns.ts";
import type { Paths } from "./paths.ts";
import { Streaks } from "./streaks.ts";

/** What is ahead of an entry, and by which nodes. */
export interface View {
  readonly ahead: Ahead;
  readonly nodes: readonly Node[];
}

/** More names than this are not kept with a waiter. */
const mostKept = 64;

/** What is asked to be deleted so that it is refused: a version that no node has, of one that nobody makes. */
const nowhere = "/holdfast-nowhere";
const noVersion: number = 2 ** 31 - 1;

/** Looks at queues with the sessions of one client. */
export class Viewer {
  readonly #clock: Clock;
  readonly #owns: OwnEntries;
  readonly #neighbours = new WeakMap<ZooSession, Neighbours>();
  readonly #streaks = new WeakMap<ZooSession, Streaks>();
  readonly #catchUps = new WeakMap<ZooSession, Promise<void>>();

  constructor(clock: Clock, owns: OwnEntries) {
    this.#clock = clock;
    this.#owns = owns;
  }

  /** The neighbours that a session watches. */
  neighbours(session: ZooSession): Neighbours {
    const known = this.#neighbours.get(session);
    if (known !== undefined) return known;
    const neighbours = new Neighbours(session, this.#clock);
    this.#neighbours.set(session, neighbours);
    return neighbours;
  }

  /** The queues that a session may be alone in. */
  streaks(session: ZooSession): Streaks {
    const known = this.#streaks.get(session);
    if (known !== undefined) return known;
    const streaks = new Streaks(session);
    this.#streaks.set(session, streaks);
    return streaks;
  }

  /** What is ahead of an entry of ours among the children of its queue; null if it is not there any more. */
  async aheadOf(own: Own, parent: string, children: readonly string[]): Promise<Ahead | null> {
    const { session, node } = own;
    const view = await this.aheadAt(
      session,
      parent,
      await this.inOrder(session, parent, children),
      node.name,
    );
    if (view === null) return null;
    const { nodes } = view;
    own.ahead =
      nodes.length > mostKept ? null : nodes.map(({ name }) => this.#owns.at(`${parent}/${name}`) ?? name);
    return view.ahead;
  }

  /** What is ahead of a node in an ordered queue; null if it is not in it. */
  async aheadAt(
    session: ZooSession,
    parent: string,
    ordered: readonly Node[],
    name: string,
  ): Promise<View | null> {
    const index = ordered.findIndex((node) => node.name === name);
    if (index < 0) return null;
    const nodes = ordered.slice(0, index);
    let nearest: NodeEntry | null = null;
    while (nodes.length > 0 && nearest === null) nearest = await this.#last(session, parent, nodes);
    const writers = nodes.filter(({ mode }) => mode === "write");
    let nearestWriter = nearest?.mode === "write" ? nearest : null;
    while (writers.length > 0 && nearestWriter === null) {
      nearestWriter = await this.#last(session, parent, writers);
    }
    const weight = nodes.reduce((sum, node) => sum + node.weight, 0);
    return { ahead: { count: nodes.length, weight, nearest, nearestWriter }, nodes };
  }

  /** The last of some nodes; if it has left, it is taken off, and null comes back. */
  async #last(session: ZooSession, parent: string, nodes: Node[]): Promise<NodeEntry | null> {
    const node = nodes.at(-1);
    if (node === undefined) return null;
    const path = `${parent}/${node.name}`;
    const own = this.#owns.at(path);
    const entry = own?.entry(this.#clock.now()) ?? (await this.neighbours(session).get(path, node));
    if (entry === null) nodes.pop();
    return entry;
  }

  /** Names of children as entries, in the order in which they were made. */
  async inOrder(session: ZooSession, parent: string, children: readonly string[]): Promise<readonly Node[]> {
    const nodes = entriesAmong(children);
    if (!usedUp(nodes)) return nodes;
    const stats = await Promise.all(nodes.map(({ name }) => session.exists(`${parent}/${name}`)));
    const made = nodes.flatMap((node, index) => {
      const czxid = stats[index]?.czxid;
      return czxid === undefined ? [] : [{ node, czxid }];
    });
    return made.toSorted((a, b) => (a.czxid < b.czxid ? -1 : 1)).map(({ node }) => node);
  }

  /** The entries of a queue, in order, as they are at the leader. */
  async entries(session: ZooSession, parent: string): Promise<readonly NodeEntry[]> {
    const nodes = await this.nodes(session, parent);
    const read = await Promise.all(nodes.map((node) => this.read(session, `${parent}/${node.name}`, node)));
    return read.filter((entry) => entry !== null);
  }

  /** The entry of an id, of whichever client, as it is at the leader; one that others made has the name of its node as id. */
  async find(session: ZooSession, parent: string, id: string): Promise<NodeEntry | null> {
    const guid = guidOf(id);
    const nodes = await this.nodes(session, parent);
    const node = nodes.find((each) => each.guid === guid || each.name === id);
    return node === undefined ? null : this.read(session, `${parent}/${node.name}`, node);
  }

  /** The nodes of a queue, in order, as they are at the leader. */
  async nodes(session: ZooSession, parent: string): Promise<readonly Node[]> {
    return this.inOrder(session, parent, await this.children(session, parent));
  }

  /** The names in a queue as they are now: our own server may be behind, and show an entry that was taken out. */
  async children(session: ZooSession, parent: string): Promise<readonly string[]> {
    const caughtUp = this.#catchUp(session);
    const listed = session.getChildren(parent).catch(ignoreMissing);
    const [, found] = await Promise.all([caughtUp, listed]);
    return found?.children ?? [];
  }

  /**
   * What is read behind this has all that was answered to anybody before: it is a write, and its server answers it after those before
   * it. A sync is not enough: at the leader itself it does not wait for what a follower has told already. Reads of one tick share one.
   */
  #catchUp(session: ZooSession): Promise<void> {
    const shared = this.#catchUps.get(session);
    if (shared !== undefined) return shared;
    const refused = session.delete(nowhere, noVersion).catch(ignoreRefusal);
    this.#catchUps.set(session, refused);
    queueMicrotask(() => this.#catchUps.delete(session));
    return refused;
  }

  /** The entry that a node is, or null if it has left or is about to. */
  async read(session: ZooSession, path: string, node: Node): Promise<NodeEntry | null> {
    const own = this.#owns.at(path);
    if (own !== undefined) return own.state === "live" ? own.entry(this.#clock.now()) : null;
    try {
      const { data, stat } = await session.getData(path);
      return readEntry(node, data, stat, this.#clock.wallMs());
    } catch (error) {
      if (hasZooCode(error, "noNode")) return null;
      throw error;
    }
  }

  /** The names of the queues that have entries and start with a prefix. */
  async queues(session: ZooSession, paths: Paths, prefix: string): Promise<readonly string[]> {
    const caughtUp = this.#catchUp(session);
    // Together: if one fails before the other, somebody hears of both.
    const [found] = await Promise.all([this.#queuesBelow(session, paths, paths.root), caughtUp]);
    return found.filter((name) => name.startsWith(prefix));
  }

  async #queuesBelow(session: ZooSession, paths: Paths, path: string): Promise<readonly string[]> {
    const listed = await session.getChildren(path || "/").catch(ignoreMissing);
    const children = listed?.children ?? [];
    const name = path === paths.root ? null : paths.nameAt(path);
    const own = name !== null && entriesAmong(children).length > 0 ? [name] : [];
    const deeper = path === paths.root || paths.style === "paths";
    const nodes = deeper ? children.filter((child) => parseNode(child) === null || path === paths.root) : [];
    const below = await Promise.all(
      nodes
        .filter((child) => path !== "" || child !== "zookeeper")
        .map((child) => this.#queuesBelow(session, paths, `${path}/${child}`)),
    );
    return [...own, ...below.flat()];
  }
}

function ignoreMissing(error: unknown): undefined {
  if (!hasZooCode(error, "noNode")) throw error;
}

function ignoreRefusal(error: unknown): void {
  for (const code of ["noNode", "badVersion", "noAuth", "notEmpty"] as const)
    if (hasZooCode(error, code)) return;
  throw error;
}
