/**
 * The timeline as SVG. Across, everything is in percent of the width, so that the page zooms by changing the width
 * alone; down, in pixels.
 */
import { escapeHtml } from "./escape.ts";
import type { Bar, Lane, Layout, Mark, Time } from "./scene.ts";

const HEADER = 34;
const GAP = 10;
/** How many colours style.ts has for locks. */
export const LOCK_COLOURS = 8;

interface Placed {
  readonly top: number;
  readonly height: number;
  readonly rowHeight: number;
}

/** The names of the lanes and the picture beside them. */
export function drawTimeline(layout: Layout): { readonly labels: string; readonly svg: string } {
  const drawing = new Drawing(layout);
  return { labels: drawing.labels(), svg: drawing.svg() };
}

class Drawing {
  readonly #layout: Layout;
  readonly #places = new Map<Lane, Placed>();
  readonly #height: number;
  readonly #colours: ReadonlyMap<string, number>;
  readonly #start: Time;
  readonly #length: Time;

  constructor(layout: Layout) {
    this.#layout = layout;
    let top = HEADER;
    for (const lane of layout.lanes) {
      const rowHeight = lane.rows <= 12 ? 24 : lane.rows <= 40 ? 12 : 6;
      const height = lane.rows * rowHeight + GAP;
      this.#places.set(lane, { top, height, rowHeight });
      top += height;
    }
    this.#height = top + GAP;
    this.#colours = new Map(layout.locks.map((lock, at) => [lock, at % LOCK_COLOURS]));
    const margin = Math.max(1, (layout.until - layout.from) * 0.015);
    this.#start = layout.from - margin;
    this.#length = layout.until - layout.from + 2 * margin;
  }

  labels(): string {
    const names = this.#layout.lanes.map((lane) => {
      const { height } = this.#place(lane);
      return `<div class="name" style="height:${height}px"><span>${escapeHtml(lane.proc)}</span></div>`;
    });
    return `<div class="names" style="padding-top:${HEADER}px">${names.join("")}</div>`;
  }

  svg(): string {
    const { lanes, marks, faults, flags } = this.#layout;
    const parts = [
      ...lanes.map((lane, at) => this.#stripe(lane, at)),
      ...faults.map((_, at) => this.#fault(at)),
      '<g id="axis"></g>',
      ...lanes.flatMap(({ bars }) => bars.map((bar) => this.#bar(bar))),
      ...marks.map((mark) => this.#mark(mark)),
      ...flags.map((_, at) => this.#flag(at)),
    ];
    return `<svg id="timeline" height="${this.#height}" data-from="${this.#start}" data-length="${this.#length}" data-width="${this.#wanted()}" role="img" aria-label="Timeline">${DEFINITIONS}${parts.join("")}</svg>`;
  }

  /** Wide enough, in pixels, for the bars of the busiest row to be told apart. */
  #wanted(): number {
    const perRow = this.#layout.lanes.map(({ bars, rows }) => bars.length / rows);
    return Math.round(Math.max(0, ...perRow) * 26);
  }

  #place(lane: Lane): Placed {
    return this.#places.get(lane) ?? { top: HEADER, height: 0, rowHeight: 0 };
  }

  #x(at: Time): string {
    return `${trim(((at - this.#start) / this.#length) * 100)}%`;
  }

  #width(from: Time, until: Time): string {
    return `${trim((Math.max(0, until - from) / this.#length) * 100)}%`;
  }

  #rowTop(bar: Bar): number {
    const { top, rowHeight } = this.#place(bar.lane);
    return top + GAP / 2 + bar.row * rowHeight;
  }

  #middle(lane: Lane, bar: Bar | null): number {
    const { top, rowHeight } = this.#place(lane);
    return bar === null ? top + GAP / 2 + rowHeight / 2 : this.#rowTop(bar) + rowHeight / 2;
  }

  #stripe(lane: Lane, at: number): string {
    const { top, height } = this.#place(lane);
    return `<rect class="lane${at % 2 === 0 ? "" : " odd"}" x="0" y="${top}" width="100%" height="${height}"/>`;
  }

  #fault(at: number): string {
    const fault = this.#layout.faults[at];
    if (fault === undefined) return "";
    const { from, until, label, lane, tip } = fault;
    const [x, width] = [this.#x(from), this.#width(from, until)];
    const body = this.#height - HEADER - GAP;
    const hit = lane === null ? null : this.#place(lane);
    const target =
      hit === null
        ? ""
        : `<rect class="struck" x="${x}" y="${hit.top}" width="${width}" height="${hit.height}"/>`;
    // Labels of neighbours take turns in two lines, until the script knows how long they are.
    const y = at % 2 === 0 ? 12 : 26;
    const column =
      from === until
        ? `<line x1="${x}" x2="${x}" y1="${HEADER}" y2="${HEADER + body}"/>`
        : `<rect x="${x}" y="${HEADER}" width="${width}" height="${body}"/>${target}`;
    return `<g class="fault" data-tip="${escapeHtml(tip)}">${column}<text x="${x}" y="${y}">${escapeHtml(shorten(label))}</text></g>`;
  }

  #bar(bar: Bar): string {
    const { attempt, from, granted, until, outcome, tip } = bar;
    const { rowHeight } = this.#place(bar.lane);
    if (attempt.grant?.parent) return this.#nested(bar, rowHeight);
    const [y, height] = [this.#rowTop(bar) + 1, rowHeight - 3];
    const colour = `lock${this.#colours.get(attempt.lock.name) ?? 0}`;
    const waited = granted ?? until;
    const wait = `<rect class="wait ${outcome}" x="${this.#x(from)}" y="${y + height * 0.25}" width="${this.#width(from, waited)}" height="${height * 0.5}"/>`;
    const hold = granted === null ? this.#outcome(bar, y + height / 2) : this.#hold(bar, granted, y, height);
    return `<g class="bar ${colour}" data-tip="${escapeHtml(tip)}">${wait}${hold}</g>`;
  }

  /** Drawn inside the hold that it entered. */
  #nested(bar: Bar, rowHeight: number): string {
    const from = bar.granted ?? bar.from;
    const height = rowHeight * 0.25;
    const where = `x="${this.#x(from)}" y="${this.#rowTop(bar) + rowHeight - height - 4}" width="${this.#width(from, bar.until)}"`;
    return `<g class="bar" data-tip="${escapeHtml(bar.tip)}"><rect class="nested" ${where} height="${height}" rx="2"/></g>`;
  }

  #hold(bar: Bar, granted: Time, y: number, height: number): string {
    const { grant } = bar.attempt;
    const shared = grant?.kind === "exclusive" ? "" : " soft";
    const label = grant?.token === undefined ? "" : shortToken(grant.token);
    const width = this.#width(granted, bar.until);
    const where = `x="${this.#x(granted)}" y="${y}" height="${height}"`;
    const token =
      height < 14 || label === ""
        ? ""
        : `<svg class="token" ${where} width="${width}"><text x="50%" y="${height / 2 + 4}">${label}</text></svg>`;
    return `<rect class="hold${shared}" ${where} ${atLeast(width)} rx="3"/>${token}`;
  }

  #outcome({ until, outcome }: Bar, y: number): string {
    return outcome === "open" ? "" : `<use href="#${outcome}" x="${this.#x(until)}" y="${y}"/>`;
  }

  #mark({ shape, at, lane, bar, tip }: Mark): string {
    return `<use class="mark ${shape}" href="#${shape}" x="${this.#x(at)}" y="${this.#middle(lane, bar)}" data-tip="${escapeHtml(tip)}"/>`;
  }

  #flag(at: number): string {
    const flag = this.#layout.flags[at];
    if (flag === undefined) return "";
    const { number, until, overlap, points, message } = flag;
    const band = overlap === null ? "" : this.#band(overlap);
    const rings = points.map((point) => {
      const y = this.#middle(point.lane, point.bar);
      return `<use class="ring" href="#ring" x="${this.#x(point.at)}" y="${y}"/>`;
    });
    const x = this.#x(until);
    const line = `<line x1="${x}" x2="${x}" y1="${HEADER - 8}" y2="${this.#height - GAP}"/>`;
    // Badges of one moment stand beside each other.
    const beside = this.#layout.flags.slice(0, at).filter((other) => this.#x(other.until) === x).length;
    const badge = `<svg class="badge" x="${x}" y="${HEADER - 16}"><g transform="translate(${beside * 20})"><circle r="9"/><text y="4">${number}</text></g></svg>`;
    const where = `data-from="${flag.from}" data-until="${flag.until}"`;
    return `<g class="flag" id="flag${number}" ${where} data-tip="${escapeHtml(message)}">${band}${line}${rings.join("")}${badge}</g>`;
  }

  /** From the topmost to the lowest of the bars that overlap. */
  #band({ from, until, bars }: { from: Time; until: Time; bars: readonly Bar[] }): string {
    const tops = bars.map((bar) => this.#rowTop(bar));
    const bottoms = bars.map((bar) => this.#rowTop(bar) + this.#place(bar.lane).rowHeight);
    const top = Math.min(...tops);
    return `<rect class="overlap" x="${this.#x(from)}" y="${top}" ${atLeast(this.#width(from, until))} height="${Math.max(...bottoms) - top}"/>`;
  }
}

/** Shapes are drawn around their own zero and placed by use. */
const DEFINITIONS = `<defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6"/></pattern>
<pattern id="strike" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><line x1="0" y1="0" x2="0" y2="8"/></pattern>
<path id="stale" d="M0-8L8 0L0 8L-8 0Z"/>
<path id="refused" d="M-5-5L5 5M5-5L-5 5"/>
<circle id="accepted" r="4"/>
<path id="renewed" d="M0 5V10"/>
<path id="lost" d="M-5-9H5L0-2Z"/>
<circle id="query" r="3.5"/>
<path id="fail" d="M0-6V6"/>
<path id="busy" d="M0-6V6M4-6V6"/>
<path id="info" d="M0-6L3-3L-3 0L3 3L0 6"/>
<circle id="ring" r="9"/>
</defs>`;

/** A width that stays visible, however short the time. */
function atLeast(width: string): string {
  return Number.parseFloat(width) > 0.5
    ? `width="${width}"`
    : `width="${width}" style="width:max(2px,${width})"`;
}

function shortToken(token: bigint): string {
  const text = String(token);
  return text.length > 8 ? `…${text.slice(-6)}` : text;
}

function shorten(label: string): string {
  return label.length > 24 ? `${label.slice(0, 23)}…` : label;
}

function trim(n: number): number {
  return Math.round(n * 100_000) / 100_000;
}
