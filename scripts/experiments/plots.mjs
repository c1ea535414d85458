/** Plots of experiments as SVG: one bar for each count of each row, as a share of the rounds. */

const series = /** @type {const} */ ([
  ["doubleGrants", "double grants", "#7c5cbf"],
  ["staleUnfenced", "stale writes, no fence", "#d1495b"],
  ["staleFenced", "stale writes, fence", "#2a9d8f"],
]);

/** @param {readonly import("./report.mjs").Row[]} rows */
export function drawBars(rows) {
  const [left, width, bar, gap] = [290, 380, 12, 14];
  const groups = rows.map((row) => series.filter(([key]) => row[key] !== undefined));
  const heights = groups.map((group) => group.length * bar + gap);
  const height = 40 + heights.reduce((sum, each) => sum + each, 0);
  let y = 34;
  /** @type {string[]} */
  const parts = [];
  rows.forEach((row, at) => {
    const group = groups[at] ?? [];
    parts.push(text(left - 8, y + (group.length * bar) / 2 + 4, row.label, "end"));
    group.forEach(([key, , colour], index) => {
      const share = Math.min(1, (row[key] ?? 0) / Math.max(1, row.rounds));
      const top = y + index * bar;
      parts.push(
        `<rect x="${left}" y="${top}" width="${Math.max(1, share * width).toFixed(1)}" height="${bar - 2}" fill="${colour}"/>`,
      );
      parts.push(text(left + share * width + 6, top + bar - 3, `${row[key]} of ${row.rounds}`, "start"));
    });
    y += heights[at] ?? 0;
  });
  const legend = series.map(([, name, colour], index) => {
    const x = left + index * 150;
    return `<rect x="${x}" y="8" width="10" height="10" fill="${colour}"/>${text(x + 15, 17, name, "start")}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + width + 110} ${height}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>${legend.join("")}${parts.join("")}</svg>\n`;
}

/** @param {number} x @param {number} y @param {string} words @param {"start" | "end"} anchor */
function text(x, y, words, anchor) {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="#222">${safe}</text>`;
}
