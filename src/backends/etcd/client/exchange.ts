/** What comes back on a stream of gRPC, from its headers to its status; the connection is left to session.ts. */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { type EtcdError, refusal } from "./errors.ts";
import { decodeMessage, FrameReader } from "./frames.ts";

/** What happens on a stream. */
export interface StreamListener {
  message(bytes: Buffer): void;
  /** The stream has ended; null: as the server wished, without an error. Called once, and last. */
  end(error: EtcdError | null): void;
}

/** Listens to a stream and tells what comes, in order, and how it ended. */
export class Exchange {
  readonly #stream: ClientHttp2Stream;
  readonly #listener: StreamListener;
  readonly #endpoint: string;
  readonly #frames = new FrameReader();
  #code: string | undefined;
  #text = "";
  /** What came instead of gRPC, from a proxy or another kind of server. */
  #strange = "";
  #failure: unknown;
  #over = false;

  constructor(
    stream: ClientHttp2Stream,
    endpoint: string,
    listener: StreamListener,
    lost: (text: string, cause?: unknown) => EtcdError,
  ) {
    this.#stream = stream;
    this.#endpoint = endpoint;
    this.#listener = listener;
    // A call that is refused at once has its status in the headers, any other in the trailers.
    stream.on("response", (headers) => this.#read(headers));
    stream.on("trailers", (headers) => this.#read(headers));
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("error", (error: unknown) => {
      this.#failure ??= error;
    });
    // All has come when the readable side ends; the stream closes some turns of the event loop later.
    stream.on("end", () => {
      if (this.#code !== undefined) this.#finish(lost);
    });
    stream.on("close", () => this.#finish(lost));
  }

  #finish(lost: (text: string, cause?: unknown) => EtcdError): void {
    if (this.#over) return;
    this.#over = true;
    this.#listener.end(this.#verdict(lost));
  }

  cancel(): void {
    this.#over = true;
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #read(headers: IncomingHttpHeaders): void {
    const code = headers["grpc-status"];
    const http = Number(headers[":status"] ?? 200);
    if (http !== 200) this.#strange = `it has answered with HTTP status ${http}`;
    if (typeof code !== "string") return;
    const text = headers["grpc-message"];
    this.#code = code;
    this.#text = typeof text === "string" ? decodeMessage(text) : "";
  }

  #receive(chunk: Buffer): void {
    try {
      for (const message of this.#frames.add(chunk)) if (!this.#over) this.#listener.message(message);
    } catch (error) {
      this.#failure = error;
      this.#stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
    }
  }

  #verdict(lost: (text: string, cause?: unknown) => EtcdError): EtcdError | null {
    if (this.#code !== undefined && this.#failure === undefined) {
      return this.#code === "0" ? null : refusal(Number(this.#code), this.#text, this.#endpoint);
    }
    return lost(this.#strange || "the connection ended before the answer", this.#failure);
  }
}
