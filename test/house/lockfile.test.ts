/** The lockfile can be installed from on every platform, and says what but not where from. */
import { expect, it } from "vitest";
import { read } from "./repository.ts";

interface Locked {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

function isLockfile(value: unknown): value is { readonly packages: Readonly<Record<string, Locked>> } {
  return typeof value === "object" && value !== null && "packages" in value;
}

const lockfile: unknown = JSON.parse(read("package-lock.json"));
const packages = isLockfile(lockfile) ? lockfile.packages : {};

it("records no download addresses", () => {
  expect(Object.keys(packages).length).toBeGreaterThan(10);
  expect(Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined)).toEqual([]);
});

// npm ci refuses a lockfile without them; it gets so when a registry lacks the builds of other platforms.
it("has the builds of all platforms", () => {
  const names = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, "")));
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !names.has(name))
      .map((name) => `${path} wants ${name}`),
  );
  expect(missing).toEqual([]);
});
