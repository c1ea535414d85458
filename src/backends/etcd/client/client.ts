/**
 * A thin client of etcd: it asks one server at a time, goes to the next when one fails, and repeats nothing by itself: a
 * call is sent at most once. It knows nothing of locks.
 */
import type { IncomingHttpHeaders } from "node:http2";
import type { Init } from "./codec.ts";
import { EtcdError, status } from "./errors.ts";
import type { WatchCreateRequest } from "./messages/watch.ts";
import * as methods from "./methods.ts";
import { Session, type TlsOptions } from "./session.ts";
import { type Watch, type WatchListener, WatchStream } from "./watch-stream.ts";

/** Options of EtcdClient. */
export interface EtcdClientOptions {
  /** `http://host:port` or `https://host:port` of the members of one cluster. */
  readonly endpoints: readonly string[];
  /** Who we are, where the cluster asks for that. */
  readonly auth?: { readonly user: string; readonly password: string } | undefined;
  readonly tls?: TlsOptions | undefined;
  /**
   * How long a call may take unless it says otherwise, in milliseconds.
   * @default 2000
   */
  readonly callMs?: number | undefined;
  /**
   * How long connecting to one server may take, in milliseconds.
   * @default 1000
   */
  readonly connectMs?: number | undefined;
  /**
   * How often a server has to give a sign of life, and how long it has for it, in milliseconds.
   * @default 1000
   */
  readonly pingMs?: number | undefined;
}

/** How one call is made. */
export interface CallOptions {
  /** How long it may take in all, in milliseconds. */
  readonly deadlineMs?: number | undefined;
}

/** Refusals by which a server says that it does not know our token any more, or that it asks for one now and did not before. */
const tokenIsOld = /invalid auth token|revision of auth store is old|user name is empty/;

/** A client of one cluster. */
export class EtcdClient {
  readonly #options: EtcdClientOptions;
  readonly callMs: number;
  /** Which endpoint is asked, or is to be asked next. */
  #turn: number;
  #session: Session | null = null;
  #connecting: Promise<Session> | null = null;
  #token: Promise<string> | null = null;
  #headers: IncomingHttpHeaders | null = null;
  #watches: Promise<WatchStream> | null = null;
  readonly #sessions = new Set<Session>();
  #closed = false;

  constructor(options: EtcdClientOptions) {
    if (options.endpoints.length === 0) throw new RangeError("give at least one endpoint");
    this.#options = options;
    this.callMs = options.callMs ?? 2_000;
    // Clients that are given the same list spread over it.
    this.#turn = Math.floor(Math.random() * options.endpoints.length);
  }

  get endpoints(): readonly string[] {
    return this.#options.endpoints;
  }

  /** Whether a refusal is about our token, so that the next call, which gets another one, may do better. */
  isForToken(refusal: string): boolean {
    return this.#options.auth !== undefined && tokenIsOld.test(refusal);
  }

  /** Makes a call. Rejects with an EtcdError, which says whether the call may have been carried out. */
  async call<Request, Response>(
    method: methods.Method<Request, Response>,
    request: Init<Request>,
    options: CallOptions = {},
  ): Promise<Response> {
    const { deadlineMs = this.callMs } = options;
    const message = method.request.encode(request);
    const startedAt = performance.now();
    let session = this.#session;
    let headers = this.#headers;
    if (session === null || headers === null) {
      session = await this.#reachedWithin(deadlineMs, this.#connected());
      headers = await this.#reachedWithin(deadlineMs - (performance.now() - startedAt), this.#identified());
    }
    try {
      const leftMs = deadlineMs - (performance.now() - startedAt);
      return method.response.decode(await session.call(method.path, message, headers, leftMs));
    } catch (error) {
      this.#learnFrom(error, session, headers);
      throw error;
    }
  }

  /** Makes a call to one member, whichever is asked otherwise, on a connection of its own. */
  async callMember<Request, Response>(
    endpoint: string,
    method: methods.Method<Request, Response>,
    request: Init<Request>,
  ): Promise<Response> {
    const headers = await this.#reachedWithin(this.callMs, this.#identified());
    const session = await this.#open(endpoint);
    try {
      // A member without a leader may answer, too.
      const { hasleader: _, ...rest } = headers;
      const message = method.request.encode(request);
      return method.response.decode(await session.call(method.path, message, rest, this.callMs));
    } finally {
      session.end("it is not needed any more");
    }
  }

  /** Begins a watch. It ends with the stream, with the connection, or as the server wishes, and is told so. */
  async watch(request: Init<WatchCreateRequest>, listener: WatchListener): Promise<Watch> {
    for (;;) {
      const stream = await (this.#watches ??= this.#openWatches());
      // It ends with its last watch, which may have been right now.
      if (stream.open) return stream.create(request, listener);
    }
  }

  /** Ends everything at once. Calls that are under way reject. */
  async close(): Promise<void> {
    this.#closed = true;
    const watches = this.#watches;
    this.#watches = null;
    if (watches !== null) {
      await watches.then(
        (stream) => stream.close(),
        () => {},
      );
    }
    for (const session of this.#sessions) session.end("the client was closed");
  }

  async #openWatches(): Promise<WatchStream> {
    try {
      const session = await this.#reachedWithin(this.callMs, this.#connected());
      const headers = await this.#reachedWithin(this.callMs, this.#identified());
      if (!session.open) throw lost(session.endpoint);
      return new WatchStream(
        (listener) =>
          session.stream("/etcdserverpb.Watch/Watch", headers, {
            message: (bytes) => listener.message(bytes),
            end: (error) => {
              this.#learnFrom(error, session, headers);
              listener.end(error);
            },
          }),
        (refusal) => {
          this.#watches = null;
          this.#doubtToken(refusal, headers);
        },
      );
    } catch (error) {
      this.#watches = null;
      throw error;
    }
  }

  /** The connection that is used now, or a new one to the first server that can be reached, in turn. */
  #connected(): Promise<Session> | Session {
    if (this.#session !== null) return this.#session;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<Session> {
    const { endpoints } = this.#options;
    const failures: unknown[] = [];
    for (let tries = 0; tries < endpoints.length && !this.#closed; tries++) {
      const endpoint = endpoints[this.#turn % endpoints.length] ?? "";
      try {
        const session = await this.#open(endpoint);
        session.onEnd(() => {
          if (this.#session === session) this.#forget();
        });
        this.#session = session;
        return session;
      } catch (error) {
        failures.push(error);
        this.#turn += 1;
      }
    }
    const cause = failures.length === 1 ? failures[0] : new AggregateError(failures);
    const text = failures.map((failure) => (failure instanceof Error ? failure.message : "")).join("; ");
    throw new EtcdError(this.#closed ? "the client was closed" : text, {
      status: status.unavailable,
      notDone: true,
      cause,
    });
  }

  async #open(endpoint: string): Promise<Session> {
    const { tls, connectMs = 1_000, pingMs = 1_000 } = this.#options;
    const session = await Session.open({ endpoint, tls, connectMs, pingMs });
    this.#sessions.add(session);
    void session.closed.then(() => this.#sessions.delete(session));
    if (this.#closed) session.end("the client was closed");
    return session;
  }

  #forget(): void {
    this.#session = null;
    this.#turn += 1;
  }

  /** What each call carries: that the server must have a leader, and who we are. */
  async #identified(): Promise<IncomingHttpHeaders> {
    const token = await (this.#token ??= this.#authenticate());
    this.#headers ??= token === "" ? { hasleader: "true" } : { hasleader: "true", token };
    return this.#headers;
  }

  async #authenticate(): Promise<string> {
    const { auth } = this.#options;
    if (auth === undefined) return "";
    const { path, request, response } = methods.authenticate;
    try {
      const session = await this.#connected();
      const message = request.encode({ name: auth.user, password: auth.password });
      const answer = await session.call(path, message, { hasleader: "true" }, this.callMs);
      return response.decode(answer).token;
    } catch (error) {
      // A cluster that asks nobody who they are takes everybody.
      const open = error instanceof EtcdError && /authentication is not enabled/.test(error.message);
      if (open) return "";
      this.#token = null;
      throw error;
    }
  }

  /** What connecting gives, if it takes no longer than this. */
  async #reachedWithin<T>(ms: number, work: Promise<T> | T): Promise<T> {
    if (!(work instanceof Promise)) return work;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const message = `no etcd server was reached within ${Math.floor(ms)} ms, of ${this.endpoints.join(", ")}`;
        reject(new EtcdError(message, { status: status.deadlineExceeded, notDone: true }));
      }, ms);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** After a failure the next call may do better elsewhere, or with another token. */
  #learnFrom(error: unknown, session: Session, headers: IncomingHttpHeaders): void {
    if (!(error instanceof EtcdError)) return;
    this.#doubtToken(error.message, headers);
    const isStuck = error.status === status.deadlineExceeded || error.status === status.unavailable;
    if (isStuck && this.#session === session) session.retire();
  }

  /** Asks for another token if this one is refused, but once: what others sent with it is refused, too. */
  #doubtToken(refusal: string, headers: IncomingHttpHeaders): void {
    if (!this.isForToken(refusal) || headers !== this.#headers) return;
    this.#token = null;
    this.#headers = null;
  }
}

function lost(endpoint: string): EtcdError {
  const message = `etcd at ${endpoint}: the connection has ended`;
  return new EtcdError(message, { status: status.unavailable, notDone: true, endpoint });
}
