/** A table in columns: full where nobody measures, fitted to the terminal where there is one. */
import { cut, widthOf } from "./human.ts";

/** A column and what may be done to it where space is short. */
export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** To how many cells it may be cut; absent: it is never cut. */
  readonly least?: number;
  /** Columns with a number are left out where cutting does not suffice, the lowest first. */
  readonly drop?: number;
}

const gap = 2;

/** The lines of a table, its head first. With a width no line is longer, as far as the columns allow. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): readonly string[] {
  const all = columns.map((column, index) => {
    const cells = rows.map((row) => row[index] ?? "");
    return { column, cells, size: Math.max(widthOf(column.title), ...cells.map(widthOf)) };
  });
  // A column in which nobody has anything says nothing.
  let kept = all.filter(
    ({ column, cells }) => column.drop === undefined || cells.some((cell) => cell !== ""),
  );
  const leastSize = (one: (typeof all)[number]): number =>
    Math.min(one.size, Math.max(one.column.least ?? one.size, widthOf(one.column.title)));
  const total = (sizes: readonly number[]): number =>
    sizes.reduce((sum, size) => sum + size, 0) + gap * Math.max(0, sizes.length - 1);
  while (total(kept.map(leastSize)) > width) {
    const [next] = kept
      .filter(({ column }) => column.drop !== undefined)
      .toSorted((one, other) => (one.column.drop ?? 0) - (other.column.drop ?? 0));
    if (next === undefined) break;
    kept = kept.filter((one) => one !== next);
  }
  const sizes = kept.map(({ size }) => size);
  // Cut the widest of those that may be cut, a cell at a time, until the line fits.
  while (total(sizes) > width) {
    const widest = kept
      .map((one, index) => ({ index, size: sizes[index] ?? 0, least: leastSize(one) }))
      .filter(({ size, least }) => size > least)
      .toSorted((one, other) => other.size - one.size)[0];
    if (widest === undefined) break;
    sizes[widest.index] = widest.size - 1;
  }
  const line = (cellOf: (one: (typeof all)[number]) => string): string =>
    kept
      .map((one, index) => pad(cut(cellOf(one), sizes[index] ?? 0), sizes[index] ?? 0, one.column.align))
      .join(" ".repeat(gap))
      .trimEnd();
  return [
    line(({ column }) => column.title),
    ...rows.map((_row, index) => line(({ cells }) => cells[index] ?? "")),
  ];
}

function pad(text: string, width: number, align?: "right"): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "right" ? space + text : text + space;
}
