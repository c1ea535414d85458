/** The proxy that breaks networks: what it lets through comes in order, and what it does not is lost as it should be. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TcpProxy } from "../../src/verify/servers/tcp-proxy.ts";

let server: Server;
let proxy: TcpProxy;
let received = "";
let connections = 0;
let onData: () => void = () => {};
const sockets: Socket[] = [];

beforeEach(async () => {
  received = "";
  connections = 0;
  server = createServer((socket) => {
    connections += 1;
    sockets.push(socket);
    socket
      .on("error", () => {})
      .on("data", (chunk) => {
        received += chunk.toString();
        socket.write("answer");
        onData();
      });
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(address !== null && typeof address === "object" ? address.port : 0);
    });
  });
  proxy = await TcpProxy.start(port);
});

afterEach(async () => {
  await proxy.close();
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

function open(): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(proxy.port, "127.0.0.1", () => resolve(socket)).setNoDelay(true);
    socket.on("error", () => {});
    sockets.push(socket);
  });
}

/** Resolves when the server has got a text. */
function got(text: string): Promise<void> {
  return new Promise((resolve) => {
    onData = () => {
      if (received.includes(text)) resolve();
    };
    onData();
  });
}

/** Resolves after a while in which many chunks can be sent. */
function turn(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

it("keeps the order of what it delays", async () => {
  proxy.up.delayMs = 20;
  proxy.up.jitterMs = 10;
  const socket = await open();
  const words = Array.from({ length: 200 }, (_, index) => `${index};`);
  for (const word of words) {
    socket.write(word);
    await turn(0.5);
  }
  await got("199;");
  expect(received).toBe(words.join(""));
});

it("swallows one direction, and resets what was open when it is healed", async () => {
  const socket = await open();
  proxy.down.swallow = true;
  let answered = false;
  socket.on("data", () => (answered = true));
  socket.write("one");
  await got("one");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  proxy.heal();
  await closed;
  expect(answered).toBe(false);
});

it("resets a connection after its request has arrived", async () => {
  proxy.resetAfter = 2;
  const socket = await open();
  // Node says that it ends before it resets: whoever leaves what came before unread hears of neither.
  socket.resume();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write("one");
  await got("one");
  socket.write("two");
  await closed;
  expect(received).toBe("onetwo");
});

it("repeats the last request over a connection of its own, after the first, and throws the answer away", async () => {
  const socket = await open();
  let answers = 0;
  socket.on("data", () => (answers += 1));
  for (const word of ["login;", "one;", "two;"]) {
    socket.write(word);
    await got(word);
  }
  expect(proxy.replay()).toBe(1);
  await got("login;one;two;login;two;");
  expect(connections).toBe(2);
  expect(answers).toBe(3);
});

it("leads to another server from now on", async () => {
  const other = createServer((socket) => socket.on("error", () => {}).end("other"));
  const port = await new Promise<number>((resolve) => {
    other.listen(0, "127.0.0.1", () => {
      const address = other.address();
      resolve(address !== null && typeof address === "object" ? address.port : 0);
    });
  });
  proxy.leadTo({ host: "127.0.0.1", port });
  const socket = await open();
  const [text] = await new Promise<Buffer[]>((resolve) => socket.once("data", (chunk) => resolve([chunk])));
  expect(text?.toString()).toBe("other");
  await new Promise((resolve) => other.close(resolve));
});
