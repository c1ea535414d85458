/** Finds the word that was probably meant. */

/** How many letters have to be added, dropped, replaced or swapped with their neighbour to make one word of the other. */
function distance(a: string, b: string): number {
  const rows: number[][] = [];
  for (let i = 0; i <= a.length; i++) {
    const row: number[] = [];
    for (let j = 0; j <= b.length; j++) {
      const at = (y: number, x: number): number =>
        (y === i ? row[x] : rows[y]?.[x]) ?? Number.POSITIVE_INFINITY;
      if (i === 0 || j === 0) {
        row.push(i + j);
        continue;
      }
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const ways = [at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1)];
      if (swapped) ways.push(at(i - 2, j - 2) + 1);
      row.push(Math.min(...ways));
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? Number.POSITIVE_INFINITY;
}

/** The nearest of the words, if it is near enough to be meant. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const longEnough = words.filter((word) => given.length > 1 && word.startsWith(given));
  const [only] = longEnough;
  if (only !== undefined && longEnough.length === 1) return only;
  const ranked = words
    .map((word) => ({ word, steps: distance(given.toLowerCase(), word) }))
    .filter(({ word, steps }) => steps <= Math.max(1, Math.floor(word.length / 3)))
    .toSorted((one, other) => one.steps - other.steps);
  return ranked[0]?.word;
}
