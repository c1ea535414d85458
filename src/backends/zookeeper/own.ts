/** An entry that this client has made: until when it lives, and who waits for it to leave. Taking it out is left to owns.ts. */
import type { NewEntry } from "../../core/backend.ts";
import type { ZooSession } from "./client/index.ts";
import type { NodeEntry } from "./data.ts";
import type { Node } from "./nodes.ts";

/** One entry of ours: live, then leaving while its node is being deleted, then gone. */
export class Own {
  readonly queue: string;
  readonly asked: NewEntry;
  readonly session: ZooSession;
  readonly path: string;
  readonly node: Node;
  readonly seq: bigint;
  readonly appendedAt: number;
  /** When it goes if nobody renews it. */
  expiresAt: number;
  state: "live" | "leaving" | "gone" = "live";
  /** Whether a watch stands on our own node: then we hear of its end before anything that happened later. */
  guarded = false;
  guarding: Promise<void> | null = null;
  /** Who was ahead when we last looked: a node of somebody else, or an entry of ours. Null if there were many. */
  ahead: Array<Own | string> | null = null;
  /** Resolves when its node is surely gone: true if it was we who deleted it. */
  deletion: Promise<boolean> | null = null;
  /** Whether its node is surely not there any more. */
  left = false;
  #onGone: Set<() => void> | null = null;

  constructor(
    queue: string,
    asked: NewEntry,
    session: ZooSession,
    made: { path: string; node: Node; seq: bigint },
    now: number,
  ) {
    this.queue = queue;
    this.asked = asked;
    this.session = session;
    this.path = made.path;
    this.node = made.node;
    this.seq = made.seq;
    this.appendedAt = now;
    this.expiresAt = now + asked.ttlMs;
  }

  /** What is surely left of its life: no more than is left of its session. */
  lifeMs(now: number): number {
    const until = Math.min(this.expiresAt, this.session.provenUntil);
    // Down to whole microseconds: a sum and its difference may be a little more than what went in.
    return Math.max(0, Math.floor((until - now) * 1000) / 1000);
  }

  entry(now: number): NodeEntry {
    const { id, owner, mode, weight, permits, metadata } = this.asked;
    const { seq, node } = this;
    const lived = { expiresInMs: this.lifeMs(now), ageMs: now - this.appendedAt };
    return { id, owner, mode, weight, permits, metadata, seq, ...lived, node: node.name };
  }

  /** Calls back once, when its node is gone. */
  onGone(listener: () => void): () => void {
    this.#onGone ??= new Set();
    this.#onGone.add(listener);
    return () => this.#onGone?.delete(listener);
  }

  /** A node of somebody else that was ahead has left. */
  passed(name: string): void {
    this.ahead = this.ahead?.filter((each) => each !== name) ?? null;
  }

  end(): void {
    if (this.state === "gone") return;
    this.state = "gone";
    // Or each would keep all that ever were ahead of it.
    this.ahead = null;
    const listeners = this.#onGone;
    this.#onGone = null;
    if (listeners !== null) for (const listener of listeners) listener();
  }
}
