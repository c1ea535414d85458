/** Listening to the signals of callers: one listener a signal, however many requests share it. Knows nothing of locks. */

interface Hub {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const hubs = new WeakMap<AbortSignal, Hub>();

/** Calls back once when a signal aborts, in the order of these calls; gives the function that ends it. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const hub = hubs.get(signal) ?? open(signal);
  hub.callbacks.add(callback);
  return () => {
    hub.callbacks.delete(callback);
    if (hub.callbacks.size > 0 || hubs.get(signal) !== hub) return;
    hubs.delete(signal);
    signal.removeEventListener("abort", hub.listener);
  };
}

function open(signal: AbortSignal): Hub {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    hubs.delete(signal);
    for (const callback of callbacks) callback();
  };
  const hub = { callbacks, listener };
  hubs.set(signal, hub);
  signal.addEventListener("abort", listener, { once: true });
  return hub;
}

/** A signal that aborts with the first of several. */
export interface Following {
  readonly signal: AbortSignal;
  /** Stops following: nothing is left at the others. */
  readonly end: () => void;
}

/** Follows signals until it is ended. AbortSignal.any cannot be ended, and on Node 20 and 22 leaves something at each for ever. */
export function follow(signals: readonly AbortSignal[]): Following {
  const controller = new AbortController();
  const ends: (() => void)[] = [];
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    else ends.push(onAbort(signal, () => controller.abort(signal.reason)));
  }
  return {
    signal: controller.signal,
    end: () => {
      for (const end of ends) end();
    },
  };
}
