/** A user looks who holds and who waits: the answer is recorded for the checker, and what it shows of the user's own locks is compared. */
import type { LockManager } from "../../core/manager.ts";
import type { LockInfo } from "../../core/query.ts";
import type { Handle, Observer } from "./observer.ts";

/** Queries one name. */
export async function lookAtQueue(locks: LockManager, observer: Observer, lock: string): Promise<void> {
  const call = observer.next();
  const before = observer.holding(lock);
  observer.record({ f: "query", type: "invoke", lock, call });
  try {
    const { held, pending } = await locks.query({ prefix: lock });
    const isLock = ({ name, permits }: LockInfo): boolean => name === lock && permits === undefined;
    const tokens = (infos: readonly LockInfo[]): bigint[] => infos.filter(isLock).map(({ token }) => token);
    const [holders, waiters] = [tokens(held), tokens(pending)];
    observer.record({ f: "query", type: "ok", lock, call, holders, waiters });
    const still = new Set(observer.holding(lock));
    const shown = held.filter(isLock);
    for (const handle of before) if (still.has(handle)) compare(locks, observer, handle, shown);
    const foreign = [...held, ...pending].find(({ name }) => !name.startsWith(lock));
    if (foreign !== undefined) observer.violate("A1", `a listing of ${lock} shows ${foreign.name}`);
  } catch (error) {
    observer.record({ f: "query", type: "info", lock, call, detail: observer.explain(error) });
  }
}

/** What is shown of a lock that was held all the while is what was asked for. */
function compare(
  locks: LockManager,
  observer: Observer,
  { lock, metadata }: Handle,
  held: readonly LockInfo[],
): void {
  const info = held.find(({ token }) => token === lock.token);
  if (info === undefined) return;
  const shown = [info.mode, info.clientId, info.owner.label, info.metadata];
  const asked = [lock.mode, locks.clientId, observer.proc, metadata];
  if (shown.some((each, index) => each !== asked[index])) {
    observer.violate("A1", `a listing shows ${JSON.stringify(shown)} for ${JSON.stringify(asked)}`);
  }
}
