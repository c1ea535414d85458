/** The client's codec: what it writes, it reads; and broken bytes are refused, never believed and never waited on. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MalformedFrame } from "../../src/backends/zookeeper/client/errors.ts";
import { FrameSplitter } from "../../src/backends/zookeeper/client/frames.ts";
import { parseEnsemble } from "../../src/backends/zookeeper/client/hosts.ts";
import { JuteReader, JuteWriter } from "../../src/backends/zookeeper/client/jute.ts";
import * as wire from "../../src/backends/zookeeper/client/wire.ts";

const readers: ReadonlyArray<(frame: Buffer) => unknown> = [
  (frame) => wire.readWelcome(frame),
  ...[
    wire.readHeader,
    wire.readEvent,
    wire.readCreated,
    wire.readStat,
    wire.readData,
    wire.readChildren,
    wire.readMulti,
  ].map((read) => (frame: Buffer) => read(new JuteReader(frame))),
];

/** What reading gave: a value or a refusal; any other error comes out. */
function outcome(read: () => unknown): "read" | "refused" {
  try {
    read();
    return "read";
  } catch (error) {
    if (error instanceof MalformedFrame) return "refused";
    throw error;
  }
}

describe("the codec", () => {
  it("reads what it has written", () => {
    const value = fc.record({
      int: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      long: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      flag: fc.boolean(),
      text: fc.string({ unit: "grapheme", maxLength: 400 }),
      bytes: fc.uint8Array({ maxLength: 1_000 }),
      list: fc.array(fc.string(), { maxLength: 30 }),
    });
    fc.assert(
      fc.property(value, ({ int, long, flag, text, bytes, list }) => {
        const writer = new JuteWriter().int(int).long(long).flag(flag).text(text).bytes(bytes);
        writer.list(list, (each) => writer.text(each));
        const [frame] = new FrameSplitter().push(writer.frame());
        const reader = new JuteReader(frame ?? Buffer.alloc(0));
        expect([reader.int(), reader.long(), reader.flag(), reader.text()]).toEqual([int, long, flag, text]);
        expect([...reader.bytes()]).toEqual([...bytes]);
        expect(reader.list(() => reader.text())).toEqual(list);
        expect(reader.left).toBe(0);
      }),
    );
  });

  it("refuses a message that ends too early, wherever it is cut", () => {
    const writer = new JuteWriter().text("/path");
    for (let field = 0; field < 6; field++) writer.long(7n);
    const whole = writer.int(1).int(2).int(3).frame().subarray(4);
    const full = Buffer.concat([whole, Buffer.alloc(8)]);
    expect(outcome(() => wire.readCreated(new JuteReader(full)))).toBe("read");
    for (let length = 0; length < 5 + 4 + 67; length++) {
      const cut = full.subarray(0, length);
      expect(outcome(() => wire.readCreated(new JuteReader(cut)))).toBe("refused");
    }
  });

  it("refuses broken messages and nothing worse", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(readers.length - 1), (bytes, which) => {
        const read = readers[which];
        if (read !== undefined) outcome(() => read(Buffer.from(bytes)));
      }),
      { numRuns: 5_000 },
    );
  });

  it("does not make room for a list that cannot be there", () => {
    const frame = new JuteWriter()
      .int(2 ** 31 - 1)
      .frame()
      .subarray(4);
    expect(outcome(() => wire.readChildren(new JuteReader(frame)))).toBe("refused");
  });
});

describe("the splitter", () => {
  it("gives the same messages however the bytes are cut", () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(messages, fc.infiniteStream(fc.integer({ min: 1, max: 90 })), (bodies, sizes) => {
        const frames = bodies.map((body) => {
          const length = Buffer.alloc(4);
          length.writeInt32BE(body.length);
          return Buffer.concat([length, body]);
        });
        const bytes = Buffer.concat(frames);
        const splitter = new FrameSplitter();
        const got: Buffer[] = [];
        for (let at = 0; at < bytes.length;) {
          const size = sizes.next().value ?? 1;
          got.push(...splitter.push(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(got.map((frame) => [...frame])).toEqual(bodies.map((body) => [...body]));
      }),
    );
  });

  it.each([-1, -(2 ** 31), 2 ** 30])("refuses a message of %d bytes", (length) => {
    const bytes = Buffer.alloc(8);
    bytes.writeInt32BE(length);
    expect(() => new FrameSplitter().push(bytes)).toThrow(MalformedFrame);
  });
});

describe("a connect string", () => {
  it("has hosts, ports and a chroot", () => {
    expect(parseEnsemble("a:1,b,[::1]:3/x/y/")).toEqual({
      hosts: [
        { host: "a", port: 1 },
        { host: "b", port: 2181 },
        { host: "::1", port: 3 },
      ],
      chroot: "/x/y",
    });
    expect(parseEnsemble("a/").chroot).toBe("");
  });

  it.each(["", ",", "a:0", "a:70000", "a:b", "user@a", "a//b", "a/../b", "a b"])("refuses %j", (text) => {
    expect(() => parseEnsemble(text)).toThrow(TypeError);
  });

  it.each([[["a:1"]], [undefined], [{ host: "a", port: 1 }]])(
    "refuses %j, and shows how it is written",
    (hosts) => {
      expect(() => parseEnsemble(hosts)).toThrow(/one text, such as "zk1:2181,zk2:2181"/);
    },
  );
});
