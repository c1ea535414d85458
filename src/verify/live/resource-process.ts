/** A resource in a process of its own: serves one ResourceLogs on loopback until its parent is gone. */
import { createServer } from "node:net";
import { recordTo } from "./history-file.ts";
import { onLines, sendLine } from "./lines.ts";
import { ResourceLogs } from "./resource.ts";
import { isRequest, type ResourceRequest } from "./resource-client.ts";

const [, , kind = "", file = ""] = process.argv;
const logs = new ResourceLogs(recordTo(file), kind === "fenced");

function answer(request: ResourceRequest): unknown {
  if (request.ask === "read") return logs.read(request.name, request.token);
  if (request.ask === "write") return logs.write(request.write);
  logs.recordAll();
  return logs.counts;
}

const server = createServer((socket) => {
  socket.setNoDelay(true).on("error", () => {});
  onLines(socket, (request) => {
    if (isRequest(request)) sendLine(socket, { call: request.call, value: answer(request) });
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") process.send?.({ port: address.port });
});
process.on("disconnect", () => process.exit());
// Ctrl-C on the terminal reaches the whole group: when this ends is for the parent to say.
process.on("SIGINT", () => {});
