/**
 * One connection to one etcd server: calls with a deadline each, streams, and a ping that finds out when the server has
 * frozen. Which server is asked, and what is done after a failure, is left to client.ts.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { SecureContextOptions } from "node:tls";
import { afterReading, systemClock, type Timer } from "../../../core/clock.ts";
import { EtcdError, status } from "./errors.ts";
import { Exchange, type StreamListener } from "./exchange.ts";
import { frame } from "./frames.ts";

/** How a server is reached. */
export interface SessionOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly endpoint: string;
  readonly tls?: TlsOptions | undefined;
  /** How long connecting may take, in milliseconds. */
  readonly connectMs: number;
  /** How often the server has to give a sign of life, and how long it has for it, in milliseconds. */
  readonly pingMs: number;
}

/** What a TLS connection needs: certificates as Node's `tls` takes them. */
export interface TlsOptions extends Pick<SecureContextOptions, "ca" | "cert" | "key" | "passphrase"> {
  /** The name in the server's certificate, where it is not the host of the endpoint. */
  readonly servername?: string | undefined;
}

/** A stream in both directions. */
export interface Stream {
  send(message: Uint8Array): void;
  /** Ends it at once; the listener is not called any more. */
  cancel(): void;
}

/** Large enough that a long listing does not wait for window updates, in bytes. */
const windowBytes = 4 * 1024 * 1024;

/** A connection that has been made. */
export class Session {
  readonly endpoint: string;
  readonly #session: ClientHttp2Session;
  readonly #pingMs: number;
  readonly #onEnd = new Set<() => void>();
  /** Resolves when the connection is closed and nothing is under way on it any more. */
  readonly closed: Promise<void>;
  readonly #fullByPath = new Map<string, OutgoingHttpHeaders>();
  #headersOf: IncomingHttpHeaders | null = null;
  #pinger: Timer | null = null;
  #ended: EtcdError | null = null;

  private constructor(session: ClientHttp2Session, options: SessionOptions) {
    this.endpoint = options.endpoint;
    this.#session = session;
    this.#pingMs = options.pingMs;
    this.closed = new Promise((resolve) => {
      session.on("close", () => {
        this.end("the connection was closed");
        resolve();
      });
    });
    session.on("error", (error: Error) => this.end("the connection failed", error));
    // What is under way may still be answered; new calls go elsewhere.
    session.on("goaway", () => this.retire());
    this.#pingLater();
  }

  /** Connects. A server has answered by then: a frozen one, whose system still accepts connections, does not count. */
  static open(options: SessionOptions): Promise<Session> {
    const { endpoint, tls = {}, connectMs } = options;
    return new Promise((resolve, reject) => {
      const session = connect(endpoint, { ...tls, settings: { initialWindowSize: windowBytes } });
      const fail = (text: string, cause?: unknown): void => {
        clearTimeout(late);
        session.destroy();
        const message = `etcd at ${endpoint} cannot be reached: ${text}`;
        reject(new EtcdError(message, { status: status.unavailable, notDone: true, endpoint, cause }));
      };
      const failed = (error: Error): void => fail(reasonOf(error), error);
      const late = setTimeout(() => fail(`no answer within ${connectMs} ms`), connectMs);
      session.once("connect", () => session.setLocalWindowSize(windowBytes));
      session.once("remoteSettings", () => {
        clearTimeout(late);
        session.removeAllListeners("error").removeAllListeners("close");
        session.socket.off("error", failed);
        resolve(new Session(session, options));
      });
      session.on("error", failed);
      // With TLS 1.3 a server that does not trust us says so when we are connected, and only the socket is told.
      session.socket.on("error", failed);
      session.once("close", () => fail("it closed the connection"));
    });
  }

  /** Whether new calls may be made on it. */
  get open(): boolean {
    return this.#ended === null && !this.#session.closed;
  }

  /** Calls back once, when no new calls may be made on it any more. */
  onEnd(listener: () => void): void {
    this.#onEnd.add(listener);
  }

  /** One message there, one back. Rejects with an EtcdError: at the deadline at the latest. */
  call(path: string, message: Uint8Array, headers: IncomingHttpHeaders, deadlineMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      let answer: Buffer | null = null;
      const stream = this.stream(path, headers, {
        message: (bytes) => {
          answer = bytes;
        },
        end: (error) => {
          late.cancel();
          if (error !== null) reject(error);
          else if (answer !== null) resolve(answer);
          else reject(this.#lost("the server has answered without a message"));
        },
      });
      const late = afterReading(systemClock, deadlineMs, () => {
        stream.cancel();
        const text = `etcd at ${this.endpoint} has not answered within ${Math.floor(deadlineMs)} ms`;
        const { endpoint } = this;
        reject(new EtcdError(text, { status: status.deadlineExceeded, notDone: false, endpoint }));
      });
      stream.finish(message);
    });
  }

  /** Opens a stream. */
  stream(
    path: string,
    headers: IncomingHttpHeaders,
    listener: StreamListener,
  ): Stream & { finish(message: Uint8Array): void } {
    const stream = this.#request(path, headers);
    const exchange = new Exchange(stream, this.endpoint, listener, (text, cause) => this.#lost(text, cause));
    return {
      send: (message) => void stream.write(frame(message)),
      finish: (message) => void stream.end(frame(message)),
      cancel: () => exchange.cancel(),
    };
  }

  #request(path: string, headers: IncomingHttpHeaders): ClientHttp2Stream {
    try {
      return this.#session.request(this.#fullHeaders(path, headers));
    } catch (cause) {
      const { endpoint } = this;
      const message = `etcd at ${endpoint}: the connection has ended`;
      throw new EtcdError(message, { status: status.unavailable, notDone: true, endpoint, cause });
    }
  }

  /** Made once for each path: most calls are of few kinds. */
  #fullHeaders(path: string, headers: IncomingHttpHeaders): OutgoingHttpHeaders {
    if (headers !== this.#headersOf) this.#fullByPath.clear();
    this.#headersOf = headers;
    let full = this.#fullByPath.get(path);
    if (full === undefined) {
      full = {
        ...headers,
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
      };
      this.#fullByPath.set(path, full);
    }
    return full;
  }

  /** No new calls: ends the connection when what is under way has ended. */
  retire(): void {
    if (!this.open) return;
    this.#session.close();
    this.#tellEnd();
  }

  /** Ends the connection and all that is under way on it. */
  end(why: string, cause?: unknown): void {
    if (this.#ended !== null) return;
    const ended = this.#lost(why, cause);
    this.#ended = ended;
    this.#pinger?.cancel();
    // Not within what an answer calls: Node 20 corrupts its memory if a session with streams is destroyed there.
    setImmediate(() => this.#session.destroy(ended));
    this.#tellEnd();
  }

  #tellEnd(): void {
    const listeners = [...this.#onEnd];
    this.#onEnd.clear();
    for (const listener of listeners) listener();
  }

  #lost(text: string, cause?: unknown): EtcdError {
    if (cause instanceof EtcdError) return cause;
    const message = `etcd at ${this.endpoint}: ${text}`;
    return new EtcdError(message, {
      status: status.unavailable,
      notDone: isRefusedStream(cause),
      endpoint: this.endpoint,
      cause,
    });
  }

  #pingLater(): void {
    this.#pinger = afterReading(systemClock, this.#pingMs, () => this.#ping());
  }

  #ping(): void {
    // It may have been destroyed, and say so only with the next turn of the event loop.
    if (this.#session.destroyed) return;
    this.#pinger = afterReading(systemClock, this.#pingMs, () =>
      this.end(`no sign of life within ${this.#pingMs} ms`),
    );
    this.#session.ping((error) => {
      if (this.#ended !== null || error !== null) return;
      this.#pinger?.cancel();
      this.#pingLater();
    });
  }
}

/** Whether the server has said that it did not look at the request. */
function isRefusedStream(cause: unknown): boolean {
  return cause instanceof Error && /NGHTTP2_REFUSED_STREAM/.test(cause.message);
}

/** OpenSSL's messages have the names of its source files, too. */
function reasonOf(error: Error): string {
  return "reason" in error ? String(error.reason) : error.message;
}
