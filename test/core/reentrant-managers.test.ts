/** Reentrancy keeps the sections of several LockManagers apart, although they share one storage of the process. */
import { expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { LockManager } from "../../src/core/manager.ts";

it("a section of one LockManager is no section of another", async () => {
  const first = new LockManager(memoryBackend());
  const second = new LockManager(memoryBackend());
  await first.request("a", { reentrant: true }, async (outer) => {
    await second.request("a", { reentrant: true }, async (other) => {
      // Its own store has it: had it entered the section of the first, its store would know of nobody. Tokens of two
      // stores may be equal.
      const { held } = await second.query();
      expect(held).toMatchObject([{ name: "a", token: other.token }]);
      await first.request("a", { reentrant: true }, (inner) => {
        expect(inner.token).toBe(outer.token);
      });
    });
  });
  await first.close();
  await second.close();
});
