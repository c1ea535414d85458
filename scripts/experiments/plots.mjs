/** Plots of experiments as SVG: one bar for each count of each row, as a share of the rounds, and a line up to the 95 % bound of its rate. */
import { upperBound } from "./bounds.mjs";

const series = /** @type {const} */ ([
  ["doubleGrants", "double grants", "#7c5cbf"],
  ["staleUnfenced", "stale writes, no fence", "#d1495b"],
  ["staleFenced", "stale writes, fence", "#2a9d8f"],
  ["tokensBack", "tokens that went back", "#e09f3e"],
]);

/** @param {readonly import("./report.mjs").Row[]} rows */
export function drawBars(rows) {
  const [left, width, bar, gap] = [290, 380, 12, 14];
  // Tokens that went back are looked at everywhere, and shown where some did or nothing else is counted.
  const isShown = (/** @type {(typeof series)[number]} */ [key]) =>
    rows.some(
      (row) => row[key] !== undefined && (key !== "tokensBack" || row[key] > 0 || !("doubleGrants" in row)),
    );
  const shown = series.filter(isShown);
  const groups = rows.map((row) => shown.filter(([key]) => row[key] !== undefined));
  const heights = groups.map((group) => group.length * bar + gap);
  const height = 40 + heights.reduce((sum, each) => sum + each, 0);
  let y = 34;
  /** @type {string[]} */
  const parts = [];
  rows.forEach((row, at) => {
    const group = groups[at] ?? [];
    parts.push(text(left - 8, y + (group.length * bar) / 2 + 4, row.label, "end"));
    group.forEach(([key, , colour], index) => {
      const count = row[key] ?? 0;
      const share = Math.min(1, count / Math.max(1, row.rounds));
      const bound = upperBound(count, row.rounds);
      const top = y + index * bar;
      parts.push(
        `<rect x="${left}" y="${top}" width="${Math.max(1, share * width).toFixed(1)}" height="${bar - 2}" fill="${colour}"/>`,
      );
      parts.push(
        `<path d="M${left + share * width},${top + bar / 2 - 1}H${(left + bound * width).toFixed(1)}" stroke="${colour}"/>`,
      );
      parts.push(text(left + bound * width + 6, top + bar - 3, `${count} of ${row.rounds}`, "start"));
    });
    y += heights[at] ?? 0;
  });
  const legend = shown.map(([, name, colour], index) => {
    const x = left + width + 110 - (shown.length - index) * 150;
    return `<rect x="${x}" y="8" width="10" height="10" fill="${colour}"/>${text(x + 15, 17, name, "start")}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + width + 110} ${height}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>${legend.join("")}${parts.join("")}</svg>\n`;
}

/** @param {number} x @param {number} y @param {string} words @param {"start" | "end"} anchor */
function text(x, y, words, anchor) {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="#222">${safe}</text>`;
}
