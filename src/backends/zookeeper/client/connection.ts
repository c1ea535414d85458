/**
 * One connection to one server: says who it is, sends requests one after the other without waiting, and gives each answer to
 * its asker, in order. A server that says nothing for too long, or does not answer, is given up. Which server comes next is left to the session.
 */
import type { Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { Clock, Timer } from "../../../core/clock.ts";
import { connectionLoss, hasZooCode, MalformedFrame, refusal, type ZooError, zooCodes } from "./errors.ts";
import { FrameSplitter } from "./frames.ts";
import type { Host } from "./hosts.ts";
import { JuteReader, JuteWriter } from "./jute.ts";
import { failureOf, openSocket } from "./socket.ts";
import { ops, readEvent, readHeader, readWelcome, type WatchEvent, type Welcome, xids } from "./wire.ts";

/** A request that is to be sent, or has been sent and not been answered. */
export interface Asked {
  readonly op: number;
  /** For messages: what was asked. */
  readonly what: string;
  write(writer: JuteWriter): void;
  /** Reads the answer and passes it on; called in the order of the wire, before anything that came later. */
  answer(reader: JuteReader): void;
  /** A refusal, or the end of the connection. */
  fail(error: ZooError): void;
}

/** What a connection tells its session. */
export interface ConnectionEvents {
  welcome(welcome: Welcome, sentAt: number): void;
  event(event: WatchEvent): void;
  /** The server has told all that had changed of what was watched before, or of a part of it. */
  caughtUp(): void;
  /** A request was answered, with 0 or with a refusal; it was sent at `sentAt`. */
  answered(op: number, sentAt: number, zxid: bigint, code: number): void;
  /** The end. No request that was sent before will be answered. */
  ended(cause: unknown): void;
}

interface Sent {
  readonly xid: number;
  readonly asked: Asked;
  readonly sentAt: number;
}

/** A connection, from the first attempt to its end. */
export class Connection {
  /** When the server was last heard of. */
  heardAt: number;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #events: ConnectionEvents;
  readonly #splitter = new FrameSplitter();
  readonly #hello: Buffer;
  readonly #begunAt: number;
  #helloAt = 0;
  #welcomed = false;
  #ended = false;
  #xid = 0;
  #sentAt = 0;
  /** Sent and not answered, in order; from `#answeredUpTo` on. */
  #sent: Sent[] = [];
  #answeredUpTo = 0;
  /** When the last answer came. */
  #answeredAt = 0;
  #pings: number[] = [];
  #pingEveryMs = Number.POSITIVE_INFINITY;
  #pingTimer: Timer | null = null;
  #silenceMs: number;
  #silenceTimer: Timer | null = null;
  readonly #out = new JuteWriter();
  #flushing = false;

  constructor(
    host: Host,
    tls: ConnectionOptions | undefined,
    hello: Buffer,
    /** By when the server has to have said welcome. */
    welcomeMs: number,
    clock: Clock,
    events: ConnectionEvents,
  ) {
    this.#hello = hello;
    this.#clock = clock;
    this.#events = events;
    this.#silenceMs = welcomeMs;
    this.#begunAt = clock.now();
    this.heardAt = this.#begunAt;
    const socket = openSocket(host, tls, () => this.#greet());
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#received(chunk));
    socket.on("error", (error) => this.end(failureOf(socket, host, error)));
    socket.on("close", () => this.end(new Error("the server closed the connection")));
    this.#watchSilence(welcomeMs);
  }

  /** Once the session is known: how often to show that we live, and how long the server may be silent. */
  keepUp(pingEveryMs: number, silenceMs: number): void {
    this.#pingEveryMs = pingEveryMs;
    this.#silenceMs = silenceMs;
    this.#pingTimer?.cancel();
    this.#schedulePing(pingEveryMs);
    this.#silenceTimer?.cancel();
    this.#watchSilence(silenceMs);
  }

  /** How many requests wait for their answers. */
  get unanswered(): number {
    return this.#sent.length - this.#answeredUpTo;
  }

  send(asked: Asked): void {
    this.#xid = this.#xid === 0x7fff_ffff ? 1 : this.#xid + 1;
    this.#sentAt = this.#clock.now();
    this.#sent.push({ xid: this.#xid, asked, sentAt: this.#sentAt });
    this.sendAside(this.#xid, asked);
  }

  /** Sends what is not answered in turn. */
  sendAside(xid: number, asked: Pick<Asked, "op" | "write">): void {
    this.#out.int(xid).int(asked.op);
    asked.write(this.#out);
    this.#out.finish();
    if (this.#flushing) return;
    this.#flushing = true;
    // What is written in one turn of the event loop travels together.
    process.nextTick(this.#flush);
  }

  /** Ends it; whoever waits is told that the answer will not come. */
  end(cause: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#pingTimer?.cancel();
    this.#silenceTimer?.cancel();
    this.#socket.destroy();
    const lost = this.#sent.slice(this.#answeredUpTo);
    this.#sent = [];
    this.#answeredUpTo = 0;
    // Behind credentials that it refuses, a server does nothing.
    const error = hasZooCode(cause, "authFailed") ? cause : connectionLoss(false, cause);
    for (const { asked } of lost) asked.fail(error);
    this.#events.ended(cause);
  }

  #greet(): void {
    this.#helloAt = this.#clock.now();
    this.#socket.write(this.#hello);
  }

  #flush = (): void => {
    this.#flushing = false;
    if (!this.#ended) this.#socket.write(this.#out.take());
  };

  #received(chunk: Buffer): void {
    if (this.#ended) return;
    this.heardAt = this.#clock.recent();
    try {
      for (const frame of this.#splitter.push(chunk)) {
        if (this.#ended) return;
        this.#take(frame);
      }
    } catch (error) {
      // The stream cannot be understood from here on.
      this.end(error);
    }
  }

  #take(frame: Buffer): void {
    if (!this.#welcomed) {
      this.#welcomed = true;
      this.#events.welcome(readWelcome(frame), this.#helloAt);
      return;
    }
    const reader = new JuteReader(frame);
    const { xid, zxid, code } = readHeader(reader);
    if (xid === xids.event) return this.#events.event(readEvent(reader));
    if (xid === xids.ping) return this.#events.answered(ops.ping, this.#pings.shift() ?? 0, zxid, code);
    if (xid === xids.setWatches) return this.#events.caughtUp();
    if (xid === xids.auth) return this.#authAnswered(code);
    this.#answer(xid, zxid, code, reader);
  }

  #authAnswered(code: number): void {
    if (code !== 0) this.end(refusal(code, "the credentials"));
  }

  #answer(xid: number, zxid: bigint, code: number, reader: JuteReader): void {
    const sent = this.#sent[this.#answeredUpTo];
    if (sent === undefined || sent.xid !== xid) throw new MalformedFrame(`an answer to ${xid} out of turn`);
    this.#answeredUpTo += 1;
    this.#answeredAt = this.heardAt;
    if (this.#answeredUpTo > 1024 || this.#answeredUpTo === this.#sent.length) {
      this.#sent.splice(0, this.#answeredUpTo);
      this.#answeredUpTo = 0;
    }
    this.#events.answered(sent.asked.op, sent.sentAt, zxid, code);
    if (code === 0) {
      try {
        sent.asked.answer(reader);
      } catch (error) {
        sent.asked.fail(connectionLoss(false, error));
        throw error;
      }
    } else {
      sent.asked.fail(refusal(code, sent.asked.what));
      // The session lives on another connection: this one is of no use any more.
      if (code === zooCodes.sessionMoved) this.end(refusal(code, "the session"));
    }
  }

  #schedulePing(afterMs: number): void {
    this.#pingTimer = this.#clock.after(afterMs, () => {
      const now = this.#clock.now();
      const quietMs = now - this.#sentAt;
      if (quietMs >= this.#pingEveryMs) {
        this.#sentAt = now;
        this.#pings.push(now);
        this.sendAside(xids.ping, { op: ops.ping, write: () => {} });
        this.#schedulePing(this.#pingEveryMs);
      } else this.#schedulePing(this.#pingEveryMs - quietMs);
    });
  }

  #watchSilence(afterMs: number): void {
    this.#silenceTimer = this.#clock.after(afterMs, () => {
      // After a pause of ours the timer comes before the bytes that have arrived meanwhile: let them be read first.
      setImmediate(() => setImmediate(() => this.#checkSilence()));
    });
  }

  #checkSilence(): void {
    if (this.#ended) return;
    // A server may go on giving pongs though it serves nobody any more: while requests wait, answers have to come, too.
    const askedAt = this.#sent[this.#answeredUpTo]?.sentAt ?? Number.POSITIVE_INFINITY;
    const since = Math.min(this.heardAt, Math.max(askedAt, this.#answeredAt));
    // Whatever it says, before its welcome it has said nothing.
    const silentMs = this.#clock.now() - (this.#welcomed ? since : this.#begunAt);
    if (silentMs < this.#silenceMs) return this.#watchSilence(this.#silenceMs - silentMs);
    this.end(new Error(`the server has been silent for ${Math.round(silentMs)} ms`));
  }
}
