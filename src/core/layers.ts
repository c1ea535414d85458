/** Wrappers around a backend with the same interface: for metrics, recording and faults, outside of every backend. */
import type { Backend } from "./backend.ts";

/** Makes a backend out of a backend. */
export type Layer = (inner: Backend) => Backend;

/** Puts layers around a backend: the first one is outermost. */
export function compose(backend: Backend, ...layers: readonly Layer[]): Backend {
  return layers.reduceRight((inner, layer) => layer(inner), backend);
}
