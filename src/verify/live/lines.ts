/** Messages over a socket, one JSON object a line, bigints as text with an "n": what processes of one run say to each other. */
import type { Socket } from "node:net";

/** Sends one message. */
export function sendLine(socket: Socket, message: object): void {
  const text = JSON.stringify(message, (_, value: unknown) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  if (!socket.destroyed) socket.write(`${text}\n`);
}

/** Calls back with each message that arrives. */
export function onLines(socket: Socket, receive: (message: unknown) => void): void {
  let rest = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) receive(JSON.parse(line, revive));
  });
}

function revive(_key: string, value: unknown): unknown {
  return typeof value === "string" && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value;
}
