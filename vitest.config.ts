/** How vitest runs the tests; which servers they need and what is built before is left to scripts/test.mjs. */
import { fileURLToPath } from "node:url";
import { defineConfig, type ViteUserConfig } from "vitest/config";

const root = fileURLToPath(new URL("./", import.meta.url));

const config: ViteUserConfig = defineConfig({
  // Scripts take what src has from the build; tests take it as it is, so that they need no build for it.
  resolve: {
    alias: [
      { find: /^.*\/dist\/verify\/servers\/(.*)\.js$/, replacement: `${root}src/verify/servers/$1.ts` },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    // The contract suite is for every test runner: it takes describe and it from the global scope.
    globals: true,
    watch: false,
    // Tests fork, kill and pause processes and read their own memory: each file gets a process of its own.
    pool: "forks",
    // Most of them wait for a ttl to pass or for a server to come back: more than there are cores, so that the cores have work.
    maxWorkers: 4,
    // Generous for a busy two-core machine, short enough that a lost wake-up is a failure and not a hang.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
});

export default config;
