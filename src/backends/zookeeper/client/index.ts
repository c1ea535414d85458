/** A client of ZooKeeper's wire protocol: sessions, nodes and watches, and nothing of locks. Re-exports only. */
export { connectionLoss, hasZooCode, ZooError } from "./errors.ts";
export { type Ensemble, type Host, parseEnsemble } from "./hosts.ts";
export type { Credentials, SessionOptions } from "./options.ts";
export { openSocket } from "./socket.ts";
export { ZooSession } from "./session.ts";
export type { WatchListener } from "./watches.ts";
export type { Acl, Stat, WatchEvent } from "./wire.ts";
