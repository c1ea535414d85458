/** What the colours and shapes of the timeline mean. */
import { escapeHtml } from "./escape.ts";

const SHAPES: readonly (readonly [svg: string, meaning: string])[] = [
  ['<svg width="22" height="12"><rect class="wait" width="22" height="10" y="1"/></svg>', "waits"],
  ['<svg width="12" height="12"><use class="mark lost" href="#lost" x="6" y="11"/></svg>', "lost"],
  [
    '<svg width="12" height="12"><use class="mark accepted" href="#accepted" x="6" y="6"/></svg>',
    "write accepted",
  ],
  [
    '<svg width="12" height="12"><use class="mark refused" href="#refused" x="6" y="6"/></svg>',
    "stale write refused",
  ],
  [
    '<svg width="16" height="12"><use class="mark stale" href="#stale" x="8" y="6"/></svg>',
    "stale write accepted",
  ],
  [
    '<svg width="16" height="12"><g class="fault"><rect width="16" height="12"/><rect class="struck" width="16" height="12"/></g></svg>',
    "fault, and whom it hits",
  ],
  ['<svg width="16" height="12"><rect class="overlap" width="16" height="12"/></svg>', "held twice"],
];

/** The legend, with as many locks by name as there are colours. */
export function drawLegend(locks: readonly string[], colours: number): string {
  const named = locks.slice(0, colours).map((lock, at) => {
    return `<span class="lock${at}"><i class="swatch"></i><bdi>${escapeHtml(lock)}</bdi></span>`;
  });
  const more = locks.length > colours ? [`<span>… and ${locks.length - colours} more locks</span>`] : [];
  const shapes = SHAPES.map(([svg, meaning]) => `<span>${svg}${meaning}</span>`);
  return `<div class="legend">${[...named, ...more, ...shapes].join("")}</div>`;
}
