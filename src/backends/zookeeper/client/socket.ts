/** Opens the socket to a server, plain or with TLS, and says which failures are of TLS; what travels on it is left to others. */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, TLSSocket } from "node:tls";
import type { Host } from "./hosts.ts";

/** One of the two does not trust the other, or does not speak TLS: to try again at once is of no use. */
export class TlsRefusal extends Error {
  override readonly name = "TlsRefusal";
}

/** Begins to connect; calls back when bytes may be sent. */
export function openSocket(host: Host, tls: ConnectionOptions | undefined, onOpen: () => void): Socket {
  const socket = tls === undefined ? connectTcp(host) : connectTls({ ...host, ...tls });
  socket.setNoDelay(true);
  return socket.on(tls === undefined ? "connect" : "secureConnect", onOpen);
}

/** What ended a socket: as it is, or as a refusal. */
export function failureOf(socket: Socket, { host, port }: Host, error: Error): Error {
  // Set when it is we who do not trust; what the server has against us comes as an alert.
  const untrusted = socket instanceof TLSSocket && Boolean(socket.authorizationError);
  const alert = "code" in error && String(error.code).startsWith("ERR_SSL_");
  if (!untrusted && !alert) return error;
  // OpenSSL's messages have the names of its source files, too.
  const why = alert && "reason" in error ? String(error.reason) : error.message;
  // So some versions of Java tell a client that it has to have a certificate, others by name.
  const hint = why.includes("handshake failure") ? " as to one without a certificate that it trusts" : "";
  return new TlsRefusal(`no TLS with ${host}:${port}: ${why}${hint}`, { cause: error });
}
