/** What a user does while it holds a lock: sleeps, looks whether it still holds, writes to what is protected, enters again. */
import type { Handle, SimulatedClient } from "./client.ts";

/** Works for a while. Some users stop when they see that the lock is lost; others go on, and must do no harm. */
export async function work(client: SimulatedClient, handle: Handle, reentrant: boolean): Promise<void> {
  const { dice, host, scene } = client;
  const { ttlMs } = scene.plan;
  const heedful = dice.chance(0.7);
  if (dice.chance(0.5)) listen(client, handle);
  const exclusive = handle.lock.mode === "exclusive";
  for (let steps = dice.whole(0, 3); steps > 0; steps -= 1) {
    const draw = dice.fraction();
    if (draw < 0.5) await host.sleep(dice.between(0, ttlMs * dice.pick(0.1, 0.3, 0.8)));
    else if (exclusive && draw < 0.85) await update(client, handle, dice.chance(0.7));
    else if (reentrant) await enterAgain(client, handle);
    if (dice.chance(0.7) && !client.seesHeld(handle) && heedful) return;
  }
  if (dice.chance(0.5)) client.seesHeld(handle);
}

/** Hears of a loss by the signal. On a machine that was left alone it must come before anybody else can be granted. */
function listen(client: SimulatedClient, handle: Handle): void {
  const { signal } = handle.lock;
  if (signal.aborted) return client.loses(handle);
  signal.addEventListener("abort", () => client.loses(handle), { once: true });
  handle.listens = true;
}

/** Reads a list, adds a value of its own, writes the list back: what two at once would do wrong. */
async function update(client: SimulatedClient, handle: Handle, guarded: boolean): Promise<void> {
  const { resource, plan } = client.scene;
  const { attempt, token, name } = handle;
  const list = guarded ? name : `${name}, unguarded`;
  const shown = guarded ? token : null;
  if (handle.unsure) return;
  const known = await client.network.trip(() => resource.read(list, shown));
  if (known === undefined || known === null) return;
  const value = `${client.proc}:${client.nextCall()}`;
  // Without a guard a write may be lost as soon as anything goes wrong: only then it is no claim.
  const claimed = guarded || (plan.calm && !plan.steals);
  const about = { f: "write", resource: list, attempt, value, ...(guarded ? { token } : {}) } as const;
  if (claimed) client.record({ ...about, type: "invoke" });
  const accepted = await client.network.trip(() => resource.write(list, shown, [...known, value]));
  if (accepted === undefined) handle.unsure = true;
  if (!claimed) return;
  client.record({ ...about, type: accepted === undefined ? "info" : accepted ? "ok" : "fail" });
}

/** Enters the section it is in again, sometimes in two branches at once, of which the second has to wait. */
async function enterAgain(client: SimulatedClient, outer: Handle): Promise<void> {
  const { dice, locks, host, scene } = client;
  const { mode } = outer.lock;
  let inside = 0;
  const branch = async (): Promise<void> => {
    const attempt = client.ask("acquire", outer.name, { mode });
    let entered = false;
    try {
      await locks.request(outer.name, { reentrant: true, mode }, async (lock) => {
        entered = true;
        client.entered(attempt, outer, lock);
        inside += 1;
        if (inside > 1) {
          scene.ledger.violate("M5", `Two branches of the section ${outer.attempt} were inside at once.`, []);
        }
        await host.sleep(dice.between(0, scene.plan.ttlMs * 0.2));
        inside -= 1;
        client.pending += 1;
        client.record({ f: "release", type: "invoke", attempt });
      });
    } catch (error) {
      if (!entered) return client.refused("acquire", attempt, error);
      client.explain(error);
    }
    client.pending -= 1;
    client.record({ f: "release", type: "ok", attempt });
  };
  await Promise.all(dice.chance(0.5) ? [branch(), branch()] : [branch()]);
}
