/** What a server is told on a new connection before anything is asked: who we are, and what we watch. */
import type { Connection } from "./connection.ts";
import type { JuteWriter } from "./jute.ts";
import type { Credentials } from "./options.ts";
import type { WatchKind, Watches } from "./watches.ts";
import { ops, xids } from "./wire.ts";

const kinds: readonly WatchKind[] = ["data", "missing", "children"];

/** How many characters the paths of one message have at most: servers end a connection on which one of more than 1 MiB comes. */
const mostCharacters: number = 64 * 1024;

type Paths = Readonly<Record<WatchKind, string[]>>;

/**
 * Introduces a session; the server then tells of all that has changed since the transaction that was seen last. Gives how many
 * answers about watches are to come: with the last of them all has been told.
 */
export function introduce(
  connection: Connection,
  credentials: readonly Credentials[],
  watches: Watches,
  lastZxid: bigint,
): number {
  for (const { scheme, secret } of credentials) {
    const write = (writer: JuteWriter): unknown => writer.int(0).text(scheme).bytes(Buffer.from(secret));
    connection.sendAside(xids.auth, { op: ops.auth, write });
  }
  const parts = inParts(watches);
  for (const paths of parts) {
    connection.sendAside(xids.setWatches, {
      op: ops.setWatches2,
      write: (writer) => {
        writer.long(lastZxid);
        const lists = [...kinds.map((kind) => paths[kind]), [], []];
        for (const list of lists) writer.list(list, (path) => writer.text(path));
      },
    });
  }
  return parts.length;
}

function inParts(watches: Watches): readonly Paths[] {
  const parts: Paths[] = [];
  let room = 0;
  for (const kind of kinds) {
    for (const path of watches.paths(kind)) {
      room -= path.length;
      if (room < 0 || parts.length === 0) {
        parts.push({ data: [], missing: [], children: [] });
        room = mostCharacters - path.length;
      }
      parts.at(-1)?.[kind].push(path);
    }
  }
  return parts;
}
