/** What a server is told on a new connection before anything is asked: who we are, and what we watch. */
import type { Connection } from "./connection.ts";
import type { JuteWriter } from "./jute.ts";
import type { Credentials } from "./options.ts";
import type { Watches } from "./watches.ts";
import { ops, xids } from "./wire.ts";

/** Introduces a session; the server then tells of all that has changed since the transaction that was seen last. */
export function introduce(
  connection: Connection,
  credentials: readonly Credentials[],
  watches: Watches,
  lastZxid: bigint,
): void {
  for (const { scheme, secret } of credentials) {
    const write = (writer: JuteWriter): unknown => writer.int(0).text(scheme).bytes(Buffer.from(secret));
    connection.sendAside(xids.auth, { op: ops.auth, write });
  }
  const kinds = (["data", "missing", "children"] as const).map((kind) => watches.paths(kind));
  if (kinds.every((paths) => paths.length === 0)) return;
  connection.sendAside(xids.setWatches, {
    op: ops.setWatches2,
    write: (writer) => {
      writer.long(lastZxid);
      for (const paths of [...kinds, [], []]) writer.list(paths, (path) => writer.text(path));
    },
  });
}
