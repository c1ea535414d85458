/** Tables fit the terminal: first cells are cut, then columns left out; elsewhere nothing is. */
import { expect, it } from "vitest";
import { widthOf } from "../../src/cli/human.ts";
import { type Column, tableLines } from "../../src/cli/table.ts";

const columns: readonly Column[] = [
  { title: "NAME", least: 4 },
  { title: "TOKEN", align: "right", drop: 2 },
  { title: "TEXT", least: 4, drop: 1 },
];
const rows = [
  ["order:42", "1794793709487005", "a long remark about it"],
  ["数字", "7", "short"],
];

it("is full where there is no width", () => {
  expect(tableLines(columns, rows)).toEqual([
    "NAME                 TOKEN  TEXT",
    "order:42  1794793709487005  a long remark about it",
    "数字                     7  short",
  ]);
});

it("cuts the widest cells first", () => {
  expect(tableLines(columns, rows, 40)).toEqual([
    "NAME                 TOKEN  TEXT",
    "order:42  1794793709487005  a long rema…",
    "数字                     7  short",
  ]);
});

it("leaves columns out where cutting does not suffice", () => {
  expect(tableLines(columns, rows, 26)).toEqual([
    "NAME                 TOKEN",
    "order:42  1794793709487005",
    "数字                     7",
  ]);
  expect(tableLines(columns, rows, 20)).toEqual(["NAME", "order:42", "数字"]);
});

it("is never wider than the terminal", () => {
  for (let width = 4; width < 60; width++) {
    for (const line of tableLines(columns, rows, width)) expect(widthOf(line)).toBeLessThanOrEqual(width);
  }
});

it("leaves out a column in which nobody has anything", () => {
  expect(tableLines(columns, [["a", "1", ""]])).toEqual(["NAME  TOKEN", "a         1"]);
});
