/** Joining a queue: makes the node and reads the queue in one trip, makes its parents where they are missing, and finds a node again whose answer was lost. */
import type { NewEntry, Snapshot } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { nothingAhead, ruleOf } from "../../core/grant.ts";
import { type Acl, connectionLoss, hasZooCode, type Stat, type ZooSession } from "./client/index.ts";
import { encodeEntry } from "./data.ts";
import { entriesAmong, guidOf, type Layout, parseNode, stemFor } from "./nodes.ts";
import type { Turn } from "./lanes.ts";
import { Own } from "./own.ts";
import type { OwnEntries } from "./owns.ts";
import { lineage, type Paths } from "./paths.ts";
import type { Strays } from "./strays.ts";
import type { Streak } from "./streaks.ts";
import type { Viewer } from "./view.ts";

/** How often a node is tried to be made: its parents may vanish in between, and its connection end. */
const mostTries = 6;

const nothing: Uint8Array = new Uint8Array(0);

/** What joining needs to know of its client. */
export interface AppendContext {
  readonly clock: Clock;
  readonly paths: Paths;
  readonly layout: Layout;
  readonly acl: readonly Acl[];
  readonly owns: OwnEntries;
  readonly strays: Strays;
  readonly viewer: Viewer;
  /** Whether a session was this client's and is over. */
  readonly isLost: (sessionId: bigint) => boolean;
}

interface Made {
  readonly path: string;
  readonly seq: bigint;
  /** The queue right after the node was made; null if that is not known. */
  readonly children: readonly string[] | null;
}

/** An entry of ours and what is ahead of it; null if its node is not there any more. */
export async function look(
  context: AppendContext,
  own: Own,
  known?: readonly string[] | null,
): Promise<Snapshot | null> {
  const parent = context.paths.of(own.queue);
  const children = known ?? (await context.viewer.children(own.session, parent));
  const ahead = await context.viewer.aheadOf(own, parent, children);
  return ahead === null ? null : { self: own.entry(context.clock.recent()), ahead };
}

/** Makes an entry on a session, and says what is ahead of it. Null if it would not be granted, and was to be. */
export async function join(
  context: AppendContext,
  session: ZooSession,
  queue: string,
  asked: NewEntry,
  turn: Turn,
): Promise<Snapshot | null> {
  const parent = context.paths.of(queue);
  const streak = context.viewer.streaks(session).of(parent);
  const made = await make(context, session, parent, asked, turn, streak);
  if (!("path" in made)) return made;
  const { path, seq, children } = made;
  const node = parseNode(path.slice(parent.length + 1));
  if (node === null) throw new Error(`the server named a node in its own way: ${path}`);
  const own = new Own(queue, asked, session, { path, node, seq }, context.clock.recent());
  context.owns.add(own);
  if (children?.length === 1 && children[0] === node.name) {
    own.ahead = [];
    streak.add(own);
    return { self: own.entry(own.appendedAt), ahead: nothingAhead };
  }
  streak.end();
  const said = await look(context, own, children);
  if (said === null) return join(context, session, queue, asked, turn);
  if (asked.onlyIfGranted !== true || ruleOf(asked).grants(asked, said.ahead)) return said;
  await context.owns.delete(own, false);
  return null;
}

/** Makes a node, or finds the entry in the queue: of another client, or of ours, if an answer was lost. */
async function make(
  context: AppendContext,
  session: ZooSession,
  parent: string,
  asked: NewEntry,
  turn: Turn,
  streak: Streak,
): Promise<Made | Snapshot> {
  const guid = guidOf(asked.id);
  const { acl } = context;
  const path = `${parent}/${stemFor(asked, guid, context.layout)}`;
  const wanted = { path, data: encodeEntry(asked), acl, mode: "ephemeral-sequential" } as const;
  let mayBeThere = context.strays.take(parent, asked.id, session);
  try {
    for (let tries = 1; ; tries++) {
      const found = mayBeThere ? await findAgain(context.viewer, session, parent, guid) : null;
      if (found !== null) {
        turn.done();
        return found;
      }
      mayBeThere = false;
      const guessed = streak.begin();
      const making = session.create(wanted);
      // The read waits for the write before it, and both are answered together: cheaper than a read that is answered by itself.
      const listing = guessed ? null : namesIn(session, parent);
      let made: { readonly path: string; readonly stat: Stat };
      try {
        made = await making;
      } catch (error) {
        streak.end();
        mayBeThere = isDoubtful(error);
        if (tries >= mostTries) throw error;
        // Not waited for: the next try is sent right behind, before anything that is asked later.
        if (hasZooCode(error, "noNode")) makeParents(session, parent, acl);
        else if (!mayBeThere) throw error;
        continue;
      }
      mayBeThere = true;
      const name = made.path.slice(parent.length + 1);
      const alone = guessed && streak.follows(name);
      const children = alone ? [name] : await (listing ?? namesIn(session, parent));
      const node = { path: made.path, seq: made.stat.czxid, children };
      const before = turn.earlier();
      if (before === null) {
        turn.done();
        if (children === null || children.length < 2) return node;
        return (await twinOf(context, session, parent, guid, name, children)) ?? node;
      }
      await Promise.all([before, session.delete(node.path).catch(ignoreMissing)]);
      mayBeThere = false;
    }
  } catch (error) {
    if (!mayBeThere) throw error;
    context.strays.add(parent, asked, session);
    // That it could not be looked for says nothing about what was sent before.
    const isUnsent = hasZooCode(error, "connectionLoss") && error.unsent;
    throw isUnsent
      ? connectionLoss(false, new Error("no server was reached since", { cause: error }))
      : error;
  }
}

/** Our node whose answer was lost: the session is the same, so it is either there or was never made. */
async function findAgain(
  viewer: Viewer,
  session: ZooSession,
  parent: string,
  guid: string,
): Promise<Made | null> {
  // What was under way before a change of servers is refused by the leader or done before the sync comes back.
  const children = await viewer.children(session, parent);
  const name = children.find((child) => child.startsWith(`_c_${guid}-`));
  if (name === undefined) return null;
  const path = `${parent}/${name}`;
  const stat = await session.exists(path);
  if (stat === null) return null;
  if (stat.ephemeralOwner === session.id) return { path, seq: stat.czxid, children };
  // Of a session of ours that is over: nobody will renew it.
  await session.delete(path).catch(ignoreMissing);
  return null;
}

/** The entry, if it was in the queue before: then the node that was just made is taken out again. */
async function twinOf(
  { viewer, isLost }: AppendContext,
  session: ZooSession,
  parent: string,
  guid: string,
  mine: string,
  children: readonly string[],
): Promise<Snapshot | null> {
  const twin = entriesAmong(children).find((node) => node.guid === guid && node.name !== mine);
  if (twin === undefined) return null;
  const twinPath = `${parent}/${twin.name}`;
  const stat = await session.exists(twinPath);
  if (stat !== null && isLost(stat.ephemeralOwner)) {
    // Ours, from before the session changed: nobody renews it any more.
    await session.delete(twinPath).catch(ignoreMissing);
    return null;
  }
  const self = await viewer.read(session, twinPath, twin);
  if (self === null) return null;
  await session.delete(`${parent}/${mine}`).catch(ignoreMissing);
  const ordered = await viewer.inOrder(session, parent, children);
  const view = await viewer.aheadAt(session, parent, ordered, twin.name);
  return view === null ? null : { self, ahead: view.ahead };
}

/** Containers, so that the servers remove them when they are empty. Whether it went well shows when a child is made. */
function makeParents(session: ZooSession, parent: string, acl: readonly Acl[]): void {
  for (const path of lineage(parent)) {
    session.create({ path, data: nothing, acl, mode: "container" }).catch(() => {});
  }
}

/** The children of a queue; null if they cannot be told. */
function namesIn(session: ZooSession, parent: string): Promise<readonly string[] | null> {
  return session.getChildren(parent).then(
    ({ children }) => children,
    () => null,
  );
}

function isDoubtful(error: unknown): boolean {
  return hasZooCode(error, "connectionLoss") && !error.unsent;
}

function ignoreMissing(error: unknown): void {
  if (!hasZooCode(error, "noNode")) throw error;
}
