/** One listener for each event of a client, however many backends it was handed to: Node.js takes more than ten for a leak. */

/** What emits events: a client of either library, or a node of a cluster. */
interface Emitter {
  on(event: string, listener: EventListener): unknown;
  off(event: string, listener: EventListener): unknown;
}

type EventListener = (...args: unknown[]) => void;

/** The one that listens, and whom it tells. */
interface Relay {
  readonly told: Set<EventListener>;
  readonly tell: EventListener;
}

const relays = new WeakMap<Emitter, Map<string, Relay>>();

/** Calls back on each such event, once however often it is asked for. */
export function listenTo(emitter: Emitter, event: string, listener: EventListener): void {
  let byEvent = relays.get(emitter);
  if (byEvent === undefined) relays.set(emitter, (byEvent = new Map<string, Relay>()));
  let relay = byEvent.get(event);
  if (relay === undefined) {
    relay = relayTo(new Set());
    byEvent.set(event, relay);
    emitter.on(event, relay.tell);
  }
  relay.told.add(listener);
}

/** Ends it; nothing is left with the client when the last of its listeners has gone. */
export function stopListening(emitter: Emitter, event: string, listener: EventListener): void {
  const byEvent = relays.get(emitter);
  const relay = byEvent?.get(event);
  relay?.told.delete(listener);
  if (relay?.told.size !== 0) return;
  emitter.off(event, relay.tell);
  byEvent?.delete(event);
}

function relayTo(told: Set<EventListener>): Relay {
  return {
    told,
    tell: (...args) => {
      // Whoever comes meanwhile is told of the next, as by an emitter of Node.js.
      [...told].forEach((listener) => listener(...args));
    },
  };
}
