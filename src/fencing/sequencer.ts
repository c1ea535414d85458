/**
 * Sequencers, as in Chubby: one text that says which lock, in which mode and with which token, for whoever acts on a
 * holder's behalf. It proves nothing by itself: the receiver checks it.
 */
import { invalid, LockError } from "../core/errors.ts";
import { heldTogether } from "../core/lock.ts";
import type { LockManager } from "../core/manager.ts";
import { checkName, typeName } from "../core/names.ts";
import type { LockMode } from "../core/options.ts";
import { isStale, staleToken } from "./guard.ts";
import { checkToken, type Held, parseToken } from "./token.ts";

/** Which lock, in which mode, with which token. */
export interface Sequencer {
  readonly name: string;
  readonly mode: LockMode;
  readonly token: bigint;
}

/**
 * `name:mode:token`. It is read from its end, where neither the token nor the mode can have a colon: the name may have
 * any number of them.
 */
const form = /^([^]*):(exclusive|shared):([^:]*)$/;

/** The sequencer of a lock, as text. */
export function formatSequencer(lock: Sequencer & Pick<Held, "unfenced">): string {
  const { name, mode, token, unfenced = null } = lock;
  if (unfenced !== null && unfenced !== heldTogether) {
    throw new LockError("LOCK_UNSUPPORTED", `lock ${JSON.stringify(name)} has no sequencer: ${unfenced}`, {
      lock: name,
    });
  }
  return `${checkLockName(name)}:${checkMode(mode)}:${checkToken(token)}`;
}

/** What a sequencer says. Anything that formatSequencer would not give is refused with LOCK_INVALID. */
export function parseSequencer(text: unknown): Sequencer {
  if (typeof text !== "string") throw invalid(`a sequencer is text, not ${typeName(text)}`);
  const [, name, mode, token] = form.exec(text) ?? [];
  if (name === undefined) throw invalid('a sequencer is "name:mode:token", its mode exclusive or shared');
  return { name: checkLockName(name), mode: checkMode(mode), token: parseToken(token) };
}

/** What a receiver asks of a sequencer. */
export interface SequencerCheck {
  /** The lock that protects what is to be done. */
  readonly name: string;
  /**
   * The mode that is enough: an exclusive lock is enough for what a shared one is.
   * @default "exclusive"
   */
  readonly mode?: LockMode | undefined;
  /** The highest token that the receiver has seen; null or missing if none. */
  readonly highest?: bigint | null | undefined;
}

/**
 * Checks a sequencer against what the receiver knows: LOCK_INVALID if it is for another lock or a weaker mode,
 * LOCK_STALE_TOKEN if a newer one was seen. Remembering the token is left to the receiver, or to a guard.
 */
export function checkSequencer(sequencer: string | Sequencer, check: SequencerCheck): Sequencer {
  const given = givenOf(sequencer);
  const { name, mode = "exclusive", highest = null } = check;
  if (given.name !== name) {
    throw invalid(`the sequencer is for lock ${JSON.stringify(given.name)}, not ${JSON.stringify(name)}`, {
      lock: name,
    });
  }
  if (mode === "exclusive" && given.mode === "shared") {
    throw invalid(
      `lock ${JSON.stringify(name)} is needed exclusively, and the sequencer is for a shared one`,
      {
        lock: name,
      },
    );
  }
  if (highest !== null && isStale(given.token, highest)) {
    throw staleToken({ resource: `lock ${JSON.stringify(name)}`, token: given.token, highest, lock: name });
  }
  return given;
}

/**
 * Whether a sequencer's lock is held at this moment, by asking the store, as Chubby's CheckSequencer does. By the time
 * of the answer that may be over: before a write, a guard is the better check.
 */
export async function isSequencerHeld(
  locks: Pick<LockManager, "query">,
  sequencer: string | Sequencer,
): Promise<boolean> {
  const { name, mode, token } = givenOf(sequencer);
  const { held } = await locks.query({ prefix: name });
  return held.some(
    (lock) => lock.name === name && lock.mode === mode && lock.token === token && lock.permits === undefined,
  );
}

/** A sequencer in either form, checked: what came as JSON may have another token than a bigint, or no mode. */
function givenOf(sequencer: string | Sequencer): Sequencer {
  if (typeof sequencer === "string") return parseSequencer(sequencer);
  formatSequencer(sequencer);
  return sequencer;
}

function checkLockName(name: string): string {
  if (name.startsWith("-")) throw invalid(`no lock has the name ${JSON.stringify(name)}`);
  return checkName(name);
}

function checkMode(mode: unknown): LockMode {
  if (mode === "exclusive" || mode === "shared") return mode;
  throw invalid("the mode of a sequencer is exclusive or shared");
}
