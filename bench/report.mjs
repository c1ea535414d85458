/** Turns a report into text for people. */

/** @import { Report, Summary } from "./types.ts" */

const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

/**
 * Four significant digits, thousands set apart.
 * @param {number} value
 */
export function formatNumber(value) {
  return digits.format(value);
}

/**
 * The table of all values, metric by metric, and below it the ratios of the suite.
 * @param {Report} report
 */
export function formatReport(report) {
  const metrics = new Set(Object.values(report.contenders).flatMap((summaries) => Object.keys(summaries)));
  const rows = [...metrics].flatMap((metric) =>
    Object.entries(report.contenders).flatMap(([contender, { [metric]: summary }]) => {
      if (summary === undefined) return [];
      const vsFloor = summary.vsFloor === null ? "–" : formatNumber(summary.vsFloor);
      return [[contender, metric, `${formatSummary(summary)} ${summary.unit}`, vsFloor]];
    }),
  );
  const ratios = Object.entries(report.ratios).map(([key, median]) => {
    const [min, max] = report.ratioSpread[key] ?? [median, median];
    return [key, formatSummary({ median, min, max })];
  });
  return [
    `Suite ${report.suite}: ${report.rounds} rounds, node ${report.node}, ${report.cpus} CPUs`,
    "",
    ...align([["contender", "metric", "median [min–max]", `ratio to ${report.floor}`], ...rows]),
    "",
    ...align([["ratio within the round", "median [min–max]"], ...ratios]),
    "",
  ].join("\n");
}

/** @param {Summary} summary */
function formatSummary({ median, min, max }) {
  return `${formatNumber(median)} [${formatNumber(min)}–${formatNumber(max)}]`;
}

/** @param {readonly (readonly string[])[]} rows */
function align(rows) {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
