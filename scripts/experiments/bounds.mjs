/** How sure a count is: the 95 % upper bound of its rate, and both as text. */

/** The 95 % upper bound for a rate of which k were seen in n: exact for a binomial, 1 - 0.05^(1/n) for none. */
export function upperBound(/** @type {number} */ k, /** @type {number} */ n) {
  if (n === 0) return 1;
  if (k >= n) return 1;
  let [low, high] = [k / n, 1];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (atMost(k, n, middle) > 0.05) low = middle;
    else high = middle;
  }
  return high;
}

/** The chance of at most k of n. @param {number} k @param {number} n @param {number} p */
function atMost(k, n, p) {
  let [sum, logTerm] = [0, n * Math.log1p(-p)];
  for (let i = 0; i <= k; i += 1) {
    sum += Math.exp(logTerm);
    logTerm += Math.log((n - i) / (i + 1)) + Math.log(p / (1 - p));
  }
  return sum;
}

/** A count and the bound of its rate. @param {number} count @param {number} rounds */
export function withBound(count, rounds) {
  const percent = 100 * upperBound(count, rounds);
  // Two digits, and never less than it is.
  const unit = percent < 10 ? 10 ** (Math.floor(Math.log10(percent)) - 1) : 1;
  const shown = Math.ceil(percent / unit) * unit;
  return `${count} (${shown >= 100 ? "≤ 100" : `< ${shown.toPrecision(2)}`} %)`;
}
