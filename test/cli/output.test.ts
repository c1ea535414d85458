/** What is written where: data to stdout, messages to stderr, secrets nowhere, colours only where they are seen. */
import { describe, expect, it } from "vitest";
import { message } from "../../src/cli/messages.ts";
import { toJson } from "../../src/cli/output.ts";
import { remembering } from "./rig.ts";

describe("messages", () => {
  it("go to stderr, with what to do on the next line", () => {
    const { output, stdout, stderr } = remembering();
    output.show(message("busy", { reason: "held", name: "x" }));
    expect(stderr.lines).toEqual(["holdfast: busy: held", "  holdfast show x says who holds it"]);
    expect(stdout.text).toBe("");
  });

  it("are objects with --json", () => {
    const { output, stderr } = remembering({ json: true });
    output.show(message("busy", { reason: "held", name: "x" }));
    expect(JSON.parse(stderr.text)).toEqual({
      message: "busy",
      exitCode: 75,
      text: "busy: held",
      hint: "holdfast show x says who holds it",
    });
  });

  it("cannot play tricks on the terminal", () => {
    const { output, stderr } = remembering();
    output.show(message("command-unknown", { given: "\u001b[2J", suggestion: "?" }));
    expect(stderr.text).toContain('"\\x1b[2J"');
  });

  it("with a blank that nobody fills are a mistake", () => {
    expect(() => message("busy", {})).toThrow("lacks its <reason>");
  });

  it("that are notes are left out with --quiet", () => {
    const { output, stderr } = remembering({ quiet: true });
    output.note("store-back", { store: "x" });
    expect(stderr.text).toBe("");
  });
});

it("secrets are taken out of all that is written", () => {
  const clean = (text: string): string => text.replaceAll("hunter22", "***");
  for (const json of [false, true]) {
    const { output, stdout, stderr } = remembering({ clean, json });
    output.line("hunter22");
    output.record({ seen: "hunter22" });
    output.note("store-back", { store: "hunter22" });
    output.show(message("bug", { reason: "hunter22" }));
    output.event({ text: "hunter22" });
    expect(stdout.text + stderr.text).toContain("***");
    expect(stdout.text + stderr.text).not.toContain("hunter22");
  }
});

describe("colours", () => {
  it.each([
    [{ tty: true, env: {} }, "\u001b[31mx\u001b[0m"],
    [{ tty: true, env: { NO_COLOR: "" } }, "\u001b[31mx\u001b[0m"],
    [{ tty: true, env: { NO_COLOR: "1" } }, "x"],
    [{ tty: true, env: { TERM: "dumb" } }, "x"],
    [{ tty: false, env: {} }, "x"],
  ])("%j", (options, painted) => {
    expect(remembering(options).output.paint("bad", "x")).toBe(painted);
  });
});

it("the width is that of the terminal, or none", () => {
  expect(remembering({ tty: true, columns: 60 }).output.width).toBe(60);
  expect(remembering().output.width).toBe(Number.POSITIVE_INFINITY);
});

it("tokens in JSON are decimal text", () => {
  expect(toJson({ token: 9_007_199_254_740_993n })).toBe('{"token":"9007199254740993"}');
});
