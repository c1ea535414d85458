/** Many requests at random moments through LockManager: a counter, a storm of cancellations, random interleavings. */
import assert from "node:assert/strict";
import { type ContractCase, caseOf } from "../case.ts";
import { interleave } from "../interleave.ts";
import { at, times } from "../look.ts";
import { pick } from "../random.ts";
import { Inside } from "../section.ts";
import { observe, type Observed } from "../stage.ts";

const storm = caseOf("storm");

/** How far the counter counts. */
const counts = 30;

/** Cases under load. */
export const stormCases: readonly ContractCase[] = [
  storm("a counter that is read, waited with and written under the lock loses no count", [], async (t) => {
    const managers = await times(3, () => t.manager());
    const name = t.name();
    let counter = 0;
    const requests = Array.from({ length: counts }, (_, turn) =>
      at(managers, turn % 3).request(name, async () => {
        const read = counter;
        await t.dawdle();
        counter = read + 1;
      }),
    );
    await t.within(() => `all end (${counter} of ${counts} have)`, Promise.all(requests));
    assert.equal(counter, counts);
    await t.eventuallyClean(name);
  }),

  // Hazard 23: a grant and a cancellation at the same moment.
  storm("after hundreds of cancellations at random moments nothing is left", [], async (t) => {
    const managers = await times(3, () => t.manager());
    const names = [t.name(), t.name()];
    const { shared } = await t.traits();
    const inside = new Inside();
    const wrong: unknown[] = [];
    const all: Array<{ controller: AbortController; request: Observed<unknown>; ran: boolean }> = [];
    for (let turn = 0; turn < t.pace.cancellations; turn++) {
      const [name, controller] = [pick(t.random, names), new AbortController()];
      const mode = shared && t.random() < 0.5 ? "shared" : "exclusive";
      const callback = async (): Promise<void> => {
        one.ran = true;
        try {
          const leave = inside.enter(name, mode);
          await t.dawdle();
          leave();
        } catch (error) {
          wrong.push(error);
        }
      };
      const asked = pick(t.random, managers).request(name, { mode, signal: controller.signal }, callback);
      const one = { controller, request: observe(asked), ran: false };
      all.push(one);
      if (t.random() < 0.7) pick(t.random, all).controller.abort(`abort ${turn}`);
      await t.dawdle();
    }
    for (const { controller } of all) {
      if (t.random() < 0.5) controller.abort("the last");
      await t.dawdle();
    }
    await t.eventually("all end", () => all.every(({ request }) => request.state !== "pending"));
    assert.deepEqual(wrong, []);
    for (const { request, ran, controller } of all) {
      assert.equal(request.state, ran ? "fulfilled" : "rejected");
      if (!ran) assert.equal(request.reason, controller.signal.reason);
    }
    await t.eventuallyClean(...names);
  }),

  // Hazard 20, and all that nobody has thought of.
  storm("random interleavings exclude each other, keep their order and leave nothing", [], async (t) => {
    await interleave(t, t.pace.interleavings);
  }),
];
