/** Imports point inward: core knows nothing but itself and Node, and shared code reads traits instead of names. */
import { posix } from "node:path";
import { Visitor, type Expression } from "oxc-parser";
import { describe, expect, it } from "vitest";
import { filesUnder, foldersIn, lineOf, parse, read } from "./repository.ts";

const backends = foldersIn("src/backends");

/** Every module a file names: imports, re-exports and dynamic imports with a fixed name. */
function importsOf(path: string): readonly string[] {
  const text = read(path);
  const { staticImports, staticExports, dynamicImports } = parse(path).module;
  return [
    ...staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) => entries.flatMap((entry) => entry.moduleRequest?.value ?? [])),
    ...dynamicImports.map(({ moduleRequest: { start, end } }) =>
      text.slice(start, end).replace(/["'`]/g, ""),
    ),
  ];
}

function isNamed(expression: Expression): boolean {
  return expression.type === "Literal" && backends.some((name) => expression.value === name);
}

/** `backend.name`, `this.#backend.name` and the like. */
function isNameOfBackend(expression: Expression): boolean {
  if (expression.type !== "MemberExpression" || expression.computed) return false;
  const { object, property } = expression;
  if (property.name !== "name") return false;
  if (object.type === "Identifier") return /backend/i.test(object.name);
  return object.type === "MemberExpression" && !object.computed && /backend/i.test(object.property.name);
}

/** Lines that decide by the name of a backend: comparisons and switches. */
function branchesOnNames(path: string): readonly string[] {
  const text = read(path);
  const found: string[] = [];
  const report = (position: number): void => {
    found.push(`${path}:${lineOf(text, position)}`);
  };
  new Visitor({
    BinaryExpression(node) {
      if (!/^[!=]==?$/.test(node.operator)) return;
      const sides = [node.left, node.right];
      if (sides.some(isNamed) || sides.some(isNameOfBackend)) report(node.start);
    },
    SwitchStatement(node) {
      if (isNameOfBackend(node.discriminant)) report(node.start);
    },
    SwitchCase(node) {
      if (node.test !== null && isNamed(node.test)) report(node.start);
    },
  }).visit(parse(path).program);
  return found;
}

describe("src/core", () => {
  it.each(filesUnder("src/core", ".ts"))("%s imports nothing but core and Node", (path) => {
    const outside = importsOf(path).filter((name) => {
      if (name.startsWith("node:")) return false;
      return !name.startsWith(".") || !posix.join(posix.dirname(path), name).startsWith("src/core/");
    });
    expect(outside, `imports of ${path} that leave src/core`).toEqual([]);
  });
});

it("shared code never branches on a backend's name: it reads traits", () => {
  const shared = filesUnder("src", ".ts").filter((path) => !path.startsWith("src/backends/"));
  expect(shared.flatMap(branchesOnNames)).toEqual([]);
});
