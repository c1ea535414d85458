/** The watches of a client on one stream. A watch that ends is told so, and is not made again: that is left to its owner. */
import type { Init } from "./codec.ts";
import type { EtcdError } from "./errors.ts";
import type { StreamListener } from "./exchange.ts";
import {
  type WatchCreateRequest,
  type WatchEvent,
  type WatchResponse,
  watchRequest,
  watchResponse,
} from "./messages/watch.ts";
import type { Stream } from "./session.ts";

/** Why a watch has ended. */
export interface WatchEnd {
  /** The error that ended the whole stream; null where the server ended this watch alone. */
  readonly error: EtcdError | null;
  /** Above 0n: what it asked for had been compacted away, up to this revision. */
  readonly compactRevision: bigint;
  /** What the server said. */
  readonly reason: string;
}

/** What a watch tells. */
export interface WatchListener {
  /** It stands: all that happens after this revision is told, unless a start was asked for. */
  created(revision: bigint): void;
  /** Events in the order of their revisions. */
  events(events: readonly WatchEvent[], revision: bigint): void;
  /** It tells nothing any more. Called once, and last; not after `cancel`. */
  ended(end: WatchEnd): void;
}

/** A watch that was asked for. */
export interface Watch {
  cancel(): void;
}

class Watcher implements Watch {
  readonly listener: WatchListener;
  readonly #onCancel: (watcher: Watcher) => void;
  id: bigint | null = null;
  cancelled = false;

  constructor(listener: WatchListener, onCancel: (watcher: Watcher) => void) {
    this.listener = listener;
    this.#onCancel = onCancel;
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    this.#onCancel(this);
  }
}

/** A stream with watches on it. */
export class WatchStream {
  readonly #stream: Stream;
  readonly #onEnd: (refusal: string) => void;
  readonly #byId = new Map<bigint, Watcher>();
  /** Watches are created in the order in which they were asked for. */
  readonly #asked: Watcher[] = [];
  #over = false;
  #full = false;

  /**
   * `open` gets the listener of a new stream; `onEnd` is called once, when the stream takes no more watches, with what the
   * server said if it has refused one.
   */
  constructor(open: (listener: StreamListener) => Stream, onEnd: (refusal: string) => void) {
    this.#onEnd = onEnd;
    this.#stream = open({
      message: (bytes) => this.#receive(watchResponse.decode(bytes)),
      end: (error) => this.#ended(error),
    });
  }

  /** Whether it takes new watches. */
  get open(): boolean {
    return !this.#full;
  }

  create(request: Init<WatchCreateRequest>, listener: WatchListener): Watch {
    const watcher = new Watcher(listener, (cancelled) => this.#cancel(cancelled));
    this.#asked.push(watcher);
    this.#stream.send(watchRequest.encode({ create: request }));
    return watcher;
  }

  /** Ends the stream with all its watches; they are not told. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stream.cancel();
    this.#takeNoMore("");
  }

  #receive(response: WatchResponse): void {
    const { header, watchId, created, canceled, events } = response;
    const revision = header?.revision ?? 0n;
    const watcher = created ? this.#asked.shift() : this.#byId.get(watchId);
    if (watcher === undefined) return;
    if (created && !canceled) {
      watcher.id = watchId;
      this.#byId.set(watchId, watcher);
      // It was cancelled before the server had given it an id.
      if (watcher.cancelled) return this.#cancel(watcher);
      watcher.listener.created(revision);
    }
    if (canceled) {
      const { compactRevision, cancelReason: reason } = response;
      this.#byId.delete(watchId);
      // Who we are was said when the stream began, and counts no more; those that stand are left alone.
      if (created && compactRevision === 0n) this.#takeNoMore(reason);
      this.#closeIfIdle();
      if (!watcher.cancelled) watcher.listener.ended({ error: null, compactRevision, reason });
    } else if (events.length > 0 && !watcher.cancelled) {
      watcher.listener.events(events, revision);
    }
  }

  #cancel(watcher: Watcher): void {
    if (watcher.id === null || !this.#byId.delete(watcher.id)) return;
    if (!this.#over) this.#stream.send(watchRequest.encode({ cancel: { watchId: watcher.id } }));
    this.#closeIfIdle();
  }

  #closeIfIdle(): void {
    if (this.#byId.size === 0 && this.#asked.length === 0) this.close();
  }

  #takeNoMore(refusal: string): void {
    if (this.#full) return;
    this.#full = true;
    this.#onEnd(refusal);
  }

  #ended(error: EtcdError | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#takeNoMore("");
    const watchers = [...this.#byId.values(), ...this.#asked];
    const reason = error?.message ?? "the server has ended the stream";
    for (const { cancelled, listener } of watchers) {
      if (!cancelled) listener.ended({ error, compactRevision: 0n, reason });
    }
  }
}
