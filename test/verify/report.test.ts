/** The report shows a history and its verdict, and escapes whatever names it is given. */
import { readdirSync, readFileSync } from "node:fs";
import { assert, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { checkHistory } from "../../src/verify/checker.ts";
import { History, type HistoryEvent } from "../../src/verify/history.ts";
import { parseHistory } from "../../src/verify/history-text.ts";
import { renderReport, type ReportOptions } from "../../src/verify/report.ts";
import { escapeHtml } from "../../src/verify/report/escape.ts";
import { generateHistory } from "./generate.ts";
import { claimedBy } from "./claimed.ts";

const folder = new URL("../histories/", import.meta.url);

const golden = (name: string): HistoryEvent[] =>
  parseHistory(readFileSync(new URL(`${name}.json`, folder), "utf8"));
const render = (events: readonly HistoryEvent[], options?: ReportOptions): string =>
  renderReport(events, checkHistory(events, { waitMs: 1000 }), options);
const countOf = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length;

const withoutCode = (html: string): string => html.replaceAll(/<(script|style)>.*?<\/\1>/gs, "");
const tagsOf = (html: string): string[] => html.match(/<\/?[a-z!][a-z0-9]*/gi) ?? [];

/** Tags that open and close, in order; void and self-closing ones aside. */
function unclosedTags(html: string): string[] {
  const open: string[] = [];
  for (const [, close, name = "", rest = ""] of withoutCode(html).matchAll(
    /<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/gi,
  )) {
    if (close === "/") {
      if (open.pop() !== name) return [...open, name];
    } else if (!rest.endsWith("/") && name !== "meta") open.push(name);
  }
  return open;
}

/** Every name in it is an attack. */
function hostileHistory(evil: string): readonly HistoryEvent[] {
  let t = 0n;
  const history = new History({ now: () => (t += 1_000_000n) });
  const about = { proc: evil, attempt: evil, detail: evil };
  history.record({ ...about, f: "acquire", type: "invoke", lock: evil });
  history.record({ ...about, f: "acquire", type: "ok", token: 1n });
  history.record({ proc: evil, f: "fault", type: "invoke", fault: evil, target: evil });
  history.record({ proc: evil, f: "guard", type: "ok", lock: evil, resource: evil, token: 2n, value: evil });
  history.record({ proc: evil, f: "guard", type: "ok", lock: evil, resource: evil, token: 1n });
  history.record({ proc: evil, f: "query", type: "invoke", lock: evil });
  history.record({ proc: evil, f: "query", type: "ok", lock: evil, holders: [1n], waiters: [] });
  history.record({ proc: `${evil}2`, f: "acquire", type: "invoke", lock: evil, attempt: `${evil}2` });
  history.record({ proc: `${evil}2`, f: "acquire", type: "ok", attempt: `${evil}2`, token: 2n });
  history.record({ proc: evil, f: "end", type: "ok", leaks: { [evil]: 1 } });
  return history.events;
}

describe("the report", () => {
  it.each(readdirSync(folder).map((name) => name.replace(/\.json$/, "")))("is sound HTML for %s", (name) => {
    const events = golden(name);
    const html = renderReport(events, checkHistory(events, { waitMs: 1000, invariants: claimedBy(name) }));
    expect(unclosedTags(html)).toEqual([]);
    const verdict = name.endsWith(".ok") ? "valid" : "invalid";
    expect(html).toContain(`<span class="verdict ${verdict}">${verdict}</span>`);
    expect(countOf(html, /class="flag"/g)).toBe(name.endsWith(".ok") ? 0 : 1);
    expect(html.includes("Jump to first violation")).toBe(name.endsWith(".bad"));
    expect(withoutCode(html)).not.toMatch(/NaN|undefined|Infinity|\[object/);
  });

  it("asks the network for nothing", () => {
    const html = render(generateHistory(4, { requests: 30, kill: true, seize: true }));
    expect(html).toContain(
      `content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"`,
    );
    expect(html).not.toMatch(
      /\b(src|action|poster|srcset)=|@import|url\((?!#)|<link|<iframe|<object|<form|<base/,
    );
    expect([...html.matchAll(/href="([^"]*)"/g)].filter(([, target]) => !target?.startsWith("#"))).toEqual(
      [],
    );
    expect(countOf(html, /https?:\/\//g)).toBe(1);
    expect(html).toContain('const SVG = "http://www.w3.org/2000/svg";');
  });

  it.each([
    "<img src=x onerror=alert(1)>",
    `"onmouseover="alert(1)`,
    "' onload='alert(1)",
    "</script><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "]]><svg onload=alert(1)>",
    "&lt;script&gt;",
    "${alert(1)}`",
    "\u202Etxt.exe\u0000\u2028",
  ])("shows the name %j and does not run it", (evil) => {
    const html = render(hostileHistory(evil), { title: evil });
    const harmless = render(hostileHistory("harmless"), { title: "harmless" });
    // The same elements, whatever the names are.
    expect(tagsOf(html)).toEqual(tagsOf(harmless));
    expect(unclosedTags(html)).toEqual([]);
    for (const hidden of ["\0", "\u202E", "\u2028"]) expect(html).not.toContain(hidden);
  });

  it("escapes any text so that it stays one piece of text", () => {
    assert(
      property(string({ unit: "binary" }), (text) => {
        const escaped = escapeHtml(text);
        expect(escaped).not.toMatch(/[<>"'`]/);
        expect(escaped.replaceAll(/&(amp|lt|gt|quot|#39|#96);/g, "")).not.toContain("&");
      }),
    );
  });

  it("draws an overlap, a token, a wait and a fault", () => {
    const html = render(golden("M3-stale-write-accepted.bad"));
    expect(countOf(html, /class="hold"/g)).toBe(2);
    expect(countOf(html, /class="token"[^>]*><text[^>]*>[12]<\/text>/g)).toBe(2);
    expect(countOf(html, /<g class="bar[^>]*><rect class="wait granted"/g)).toBe(2);
    expect(countOf(html, /<g class="fault" data-tip="pause c1\n/g)).toBe(1);
    expect(countOf(html, /class="mark stale"/g)).toBe(2);
    expect(countOf(html, /class="mark accepted"/g)).toBe(2);
    const refused = render(golden("M3-stale-write-refused.ok"));
    expect(countOf(refused, /class="mark refused"/g)).toBe(2);
    expect(countOf(refused, /class="mark stale"/g)).toBe(1);
    expect(countOf(render(golden("M1-exclusive-overlap.bad")), /class="overlap"/g)).toBe(2);
    expect(countOf(refused, /class="overlap"/g)).toBe(1);
  });

  it("says why a history is unknown, and draws what it can", () => {
    const events = golden("M1-exclusive-expiry.ok");
    const cut = render(events.slice(0, -1));
    expect(cut).toContain("The history was cut off");
    expect(cut).toContain('id="timeline"');
    const broken = render(events.filter(({ i }) => i !== 0));
    expect(broken).toContain("event 0: found event 1 in its place");
    expect(broken).not.toContain('id="timeline"');
    expect(render([])).toContain('<span class="verdict unknown">unknown</span>');
  });

  it("draws a part of a long history, around its first violation, and says so", () => {
    let t = 0n;
    const history = new History({ now: () => (t += 1_000_000n) });
    for (let n = 0; n < 3000; n += 1) {
      const own = { proc: `c${n % 5}`, attempt: `${n}` };
      history.record({ ...own, f: "acquire", type: "invoke", lock: "a" });
      history.record({ ...own, f: "acquire", type: "ok", token: BigInt(n), validUntil: t + 5_000_000n });
      if (n === 2000) continue;
      history.record({ ...own, f: "release", type: "invoke" });
      history.record({ ...own, f: "release", type: "ok" });
    }
    history.record({ proc: "checker", f: "end", type: "ok", leaks: {} });
    const html = render(history.events, { operations: 100 });
    expect(html).toContain("Drawn: 100 of 3,000 operations, those around the first violation.");
    const tokens = [...html.matchAll(/class="token"[^>]*><text[^>]*>(\d+)</g)].map(([, token]) =>
      Number(token),
    );
    expect(tokens).toHaveLength(100);
    expect(Math.min(...tokens)).toBeGreaterThan(1900);
    expect(tokens).toContain(2000);
    expect(tokens).toContain(2001);
    expect(render(history.events)).not.toContain("Drawn:");
  });
});
