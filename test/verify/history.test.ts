/** Histories as text: what is written is read back, and what is broken is refused with its line. */
import {
  anything,
  array,
  assert,
  bigInt,
  constantFrom,
  dictionary,
  nat,
  option,
  property,
  record,
  string,
} from "fast-check";
import { describe, expect, it } from "vitest";
import { History, HistoryError, mergeHistories, type HistoryEvent } from "../../src/verify/history.ts";
import { formatHistory, parseHistory } from "../../src/verify/history-text.ts";
import { generateHistory } from "./generate.ts";

function part(proc: string, ...times: bigint[]): HistoryEvent[] {
  return times.map((t, i) => ({ i, t, proc, f: "cancel", type: "info" }));
}

describe("the recorder", () => {
  it("numbers events and takes their time", () => {
    let t = 10n;
    const history = new History({ now: () => t++ });
    history.record({ proc: "c1", f: "acquire", type: "invoke", lock: "a", attempt: "1" });
    history.record({ proc: "c1", f: "acquire", type: "ok", attempt: "1", token: 5n });
    expect(history.events).toEqual([
      { i: 0, t: 10n, proc: "c1", f: "acquire", type: "invoke", lock: "a", attempt: "1" },
      { i: 1, t: 11n, proc: "c1", f: "acquire", type: "ok", attempt: "1", token: 5n },
    ]);
  });

  it("takes a moment from before", () => {
    const history = new History({ now: () => 100n });
    expect(history.record({ proc: "c1", f: "held", type: "ok", attempt: "1" }, 99n).t).toBe(99n);
  });

  it("runs on the monotonic clock of the machine unless told otherwise", () => {
    const history = new History();
    const before = process.hrtime.bigint();
    const { t } = history.record({ proc: "c1", f: "end", type: "ok" });
    expect(t).toBeGreaterThanOrEqual(before);
    expect(t).toBeLessThanOrEqual(process.hrtime.bigint());
  });

  it("hands on each event as it is recorded", () => {
    const seen: HistoryEvent[] = [];
    const history = new History({ now: () => 0n, onRecord: (event) => seen.push(event) });
    history.record({ proc: "c1", f: "end", type: "ok" });
    expect(seen).toEqual(history.events);
  });

  it("merges by time what several processes recorded", () => {
    const merged = mergeHistories(part("a", 1n, 4n), part("b", 2n, 3n, 9n));
    expect(merged.map(({ i, t, proc }) => [i, t, proc])).toEqual([
      [0, 1n, "a"],
      [1, 2n, "b"],
      [2, 3n, "b"],
      [3, 4n, "a"],
      [4, 9n, "b"],
    ]);
  });
});

describe("the text form", () => {
  const big = bigInt({ min: 0n, max: 2n ** 200n });
  const events = array(
    record(
      {
        t: big,
        proc: string(),
        f: constantFrom("acquire", "query", "fault", "end"),
        type: constantFrom("invoke", "ok", "fail", "info"),
        lock: string({ unit: "binary" }),
        token: big,
        validUntil: big,
        weight: nat(),
        busy: constantFrom(true, false),
        mode: constantFrom("exclusive", "shared"),
        holders: array(big),
        values: array(string()),
        leaks: dictionary(string(), nat()),
      },
      { requiredKeys: ["t", "proc", "f", "type"] },
    ),
  );

  it("reads back what was written, whatever the names and however large the numbers", () => {
    assert(
      property(events, (all) => {
        const history = all.map((event, i): HistoryEvent => ({ i, ...event }));
        const text = formatHistory(history);
        expect(text.split("\n").length).toBe(history.length + 1);
        expect(parseHistory(text)).toEqual(history);
      }),
    );
  });

  it("reads back generated histories", () => {
    const history = generateHistory(5, { requests: 100, seize: true, kill: true });
    expect(parseHistory(formatHistory(history))).toEqual(history);
  });

  it("writes tokens and times as decimal text", () => {
    const text = formatHistory([
      { i: 0, t: 1n, proc: "c", f: "acquire", type: "ok", token: 9007199254740993n },
    ]);
    expect(text).toBe('{"i":0,"t":"1","proc":"c","f":"acquire","type":"ok","token":"9007199254740993"}\n');
  });

  it("skips blank lines and takes Windows line ends", () => {
    expect(parseHistory('\r\n{"i":0,"t":"1","proc":"c","f":"end","type":"ok"}\r\n\n')).toHaveLength(1);
  });

  const good = '{"i":0,"t":"1","proc":"c","f":"end","type":"ok"}';
  it.each([
    ["{", /^line 2: not JSON, or cut off$/],
    ['{"i":1,"t":"1","proc":"c","f":"end","ty', /^line 2: not JSON, or cut off$/],
    ["[]", /^line 2: not an object$/],
    ["7", /^line 2: not an object$/],
    ["null", /^line 2: not an object$/],
    [good, /^line 2: expected event 1 but found 0$/],
    ['{"i":2,"t":"1","proc":"c","f":"end","type":"ok"}', /^line 2: expected event 1 but found 2$/],
    ['{"i":1,"t":"1","proc":"c","f":"end"}', /^line 2: i, t, proc, f and type are required$/],
    ['{"i":1,"t":1,"proc":"c","f":"end","type":"ok"}', /^line 2: t must be decimal text such as "42"$/],
    ['{"i":1,"t":"1","proc":"c","f":"end","type":"ok","token":7}', /^line 2: token must be decimal text/],
    ['{"i":1,"t":"1","proc":"c","f":"end","type":"ok","token":"0x7"}', /^line 2: token must be decimal text/],
    ['{"i":1,"t":"1","proc":"c","f":"end","type":"ok","token":"-7"}', /^line 2: token must be decimal text/],
    ['{"i":1,"t":"1","proc":"c","f":"end","type":"ok","token":null}', /^line 2: token must be decimal text/],
    ['{"i":1,"t":"1","proc":"c","f":"grab","type":"ok"}', /^line 2: f must be one of acquire, try, /],
    [
      '{"i":1,"t":"1","proc":"c","f":"end","type":"done"}',
      /^line 2: type must be one of invoke, ok, fail, info$/,
    ],
    [
      '{"i":1,"t":"1","proc":"c","f":"end","type":"ok","vaildUntil":"1"}',
      /^line 2: unknown field "vaildUntil"$/,
    ],
    [
      '{"i":1,"t":"1","proc":"c","f":"end","type":"ok","__proto__":{}}',
      /^line 2: unknown field "__proto__"$/,
    ],
    [
      '{"i":1,"t":"1","proc":"c","f":"end","type":"ok","weight":-1}',
      /^line 2: weight must be a whole number/,
    ],
    ['{"i":1,"t":"1","proc":"c","f":"query","type":"ok","holders":[1]}', /^line 2: holders must be a list/],
    [
      '{"i":1,"t":"1","proc":"c","f":"end","type":"ok","leaks":{"keys":"1"}}',
      /^line 2: leaks must be an object/,
    ],
  ])("refuses %s and names the line", (line, message) => {
    expect(() => parseHistory(`${good}\n${line}\n`)).toThrow(HistoryError);
    expect(() => parseHistory(`${good}\n${line}\n`)).toThrow(message);
  });

  it("never throws anything else, whatever the text", () => {
    assert(
      property(option(string()), anything(), (text, value) => {
        try {
          parseHistory(
            text ??
              JSON.stringify(value, (_, item) => (typeof item === "bigint" ? 0 : (item as unknown))) ??
              "",
          );
        } catch (error) {
          expect(error).toBeInstanceOf(HistoryError);
        }
      }),
    );
  });
});
