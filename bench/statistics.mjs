/** The arithmetic of the bench: order, medians, ratios within a round. Knows nothing of processes or clocks. */

/** @import { Metric, Ratio, Round, Summary } from "./types.ts" */

/**
 * The items in the same cyclic order, beginning with another one in each turn, so that nobody always goes first.
 * @template T
 * @param {readonly T[]} items
 * @param {number} turn
 * @returns {T[]}
 */
export function rotate(items, turn) {
  const start = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

/**
 * Median, least and greatest of at least one value. Of an even number, the median is the mean of the middle two.
 * @param {readonly number[]} values
 * @returns {Summary}
 */
export function summarize(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)];
  const high = sorted[Math.floor(sorted.length / 2)];
  const min = sorted[0];
  const max = sorted.at(-1);
  if (low === undefined || high === undefined || min === undefined || max === undefined) {
    throw new RangeError("there is no median of nothing");
  }
  return { median: (low + high) / 2, min, max };
}

/**
 * One quotient for each round that has the values: what was measured, divided by the best of what it is compared with in
 * that round. There must be one round that has them.
 * @param {readonly Round[]} rounds
 * @param {Ratio} ratio
 * @param {Readonly<Record<string, Metric>>} metrics
 * @returns {number[]}
 */
export function ratioPerRound(rounds, ratio, metrics) {
  const points = [ratio.of, ...ratio.to];
  const missing = points.find(
    ({ contender, metric }) => !rounds.some((round) => has(round, contender, metric)),
  );
  if (missing !== undefined)
    throw new Error(`a ratio needs ${missing.metric} of ${missing.contender}, which was not measured`);
  const complete = rounds.filter((round) =>
    points.every((point) => has(round, point.contender, point.metric)),
  );
  return complete.map((round) => {
    const valueAt = (/** @type {Ratio["of"]} */ { contender, metric }) =>
      round[contender]?.[metric] ?? Number.NaN;
    const peers = ratio.to.map(valueAt);
    if (peers.length === 0) return valueAt(ratio.of);
    const better = metrics[ratio.to[0]?.metric ?? ""]?.better;
    return valueAt(ratio.of) / (better === "lower" ? Math.min(...peers) : Math.max(...peers));
  });
}

/** @param {Round} round @param {string} contender @param {string} metric */
function has(round, contender, metric) {
  return round[contender]?.[metric] !== undefined;
}
