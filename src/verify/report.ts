/**
 * The report: one HTML file that shows a history and what was found in it, to be opened anywhere. It asks the network
 * for nothing and says so to the browser; names in it are other people's text and are escaped.
 */
import type { CheckResult } from "./checker.ts";
import { HistoryError, type HistoryEvent } from "./history.ts";
import { MEANINGS } from "./meanings.ts";
import { drawTimeline, LOCK_COLOURS } from "./report/draw.ts";
import { escapeHtml } from "./report/escape.ts";
import { layOut } from "./report/layout.ts";
import { drawLegend } from "./report/legend.ts";
import type { Layout } from "./report/scene.ts";
import { SCRIPT } from "./report/script.ts";
import { STYLE } from "./report/style.ts";
import { traceHistory } from "./tracer.ts";
import { span } from "./words.ts";

/** What the report is called and how much it draws. */
export interface ReportOptions {
  /** @default "Lock history" */
  readonly title?: string;
  /**
   * How many requests and writes are drawn at most; of a longer history, those around the first violation.
   * @default 10_000
   */
  readonly operations?: number;
}

/** Renders a history and the result of checking it as one self-contained HTML page. */
export function renderReport(
  events: readonly HistoryEvent[],
  result: CheckResult,
  options: ReportOptions = {},
): string {
  const title = escapeHtml(options.title ?? "Lock history");
  const layout = tryLayOut(events, result, options.operations ?? 10_000);
  const length = (events.at(-1)?.t ?? 0n) - (events[0]?.t ?? 0n);
  const facts = [`${count(events.length, "event")} in ${span(length)}`];
  if (layout !== null) {
    facts.push(count(layout.operations, "operation"), count(layout.locks.length, "lock"));
  }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>${title}: ${result.verdict}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${title}</h1><span class="verdict ${result.verdict}">${result.verdict}</span></header>
<p class="facts">${facts.join(" · ")}</p>
${result.doubts.map((doubt) => `<p class="note">${escapeHtml(doubt)}</p>`).join("\n")}
${drawViolations(result, events[0]?.t ?? 0n)}
${layout === null ? "" : drawLayout(layout)}
${drawChecked(result)}
<div id="tip" role="tooltip"></div>
<script>${SCRIPT}</script>
</body>
</html>
`;
}

/** A history that cannot be joined has no timeline; the doubts say why. */
function tryLayOut(events: readonly HistoryEvent[], result: CheckResult, limit: number): Layout | null {
  try {
    const layout = layOut(traceHistory(events), result.violations, limit);
    return layout.lanes.length === 0 ? null : layout;
  } catch (error) {
    if (error instanceof HistoryError) return null;
    throw error;
  }
}

function drawViolations({ violations }: CheckResult, origin: bigint): string {
  if (violations.length === 0) return "";
  const items = violations.map(({ invariant, message, events }, at) => {
    const when = `+${span((events.at(-1)?.t ?? origin) - origin)}`;
    return `<li><button type="button" data-flag="${at + 1}"><span class="number">${at + 1}</span><b>${invariant}</b><span>${escapeHtml(message)}</span><i>${when}</i></button></li>`;
  });
  return `<ul class="violations">${items.join("\n")}</ul>`;
}

function drawLayout(layout: Layout): string {
  const { labels, svg } = drawTimeline(layout);
  const { operations, drawn, flags } = layout;
  const where = flags.length > 0 ? "those around the first violation" : "the first ones";
  const cropped =
    drawn < operations
      ? `<p class="note">Drawn: ${drawn.toLocaleString("en")} of ${count(operations, "operation")}, ${where}. The verdict is about all of them.</p>`
      : "";
  const jump =
    flags.length > 0
      ? '<button type="button" class="jump" data-flag="1">Jump to first violation</button>'
      : "";
  return `${cropped}
<div class="bar-top"><h2>Timeline</h2>${jump}
<button type="button" data-zoom="0.5" aria-label="Zoom out">−</button>
<button type="button" data-zoom="2" aria-label="Zoom in">+</button>
<button type="button" data-zoom="0">Fit</button></div>
<div class="frame">${labels}<div id="scroller">${svg}</div></div>
${drawLegend(layout.locks, LOCK_COLOURS)}`;
}

function drawChecked({ checked, violations }: CheckResult): string {
  const rows = checked.map(({ invariant, looked }) => {
    const found = violations.filter((violation) => violation.invariant === invariant).length;
    const [how, says] =
      found > 0
        ? ["bad", `✗ ${count(found, "violation")}`]
        : looked > 0
          ? ["good", "✓ holds"]
          : ["none", "nothing to judge"];
    return `<tr><td><b>${invariant}</b></td><td>${MEANINGS[invariant]}</td><td class="n">${looked}</td><td class="v ${how}">${says}</td></tr>`;
  });
  if (rows.length === 0) return "";
  return `<h2>Invariants</h2>
<table><thead><tr><th></th><th>Claim</th><th class="n">Looked at</th><th>Verdict</th></tr></thead><tbody>${rows.join("\n")}</tbody></table>`;
}

function count(n: number, noun: string): string {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}
