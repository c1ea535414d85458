/** What a caller may demand of a store, and the refusal that says why a store cannot do it. */
import type { Fault, Traits } from "./backend.ts";
import { invalid, LockError } from "./errors.ts";
import { asObject } from "./options.ts";

/** What `connect(url, { require })` demands. */
export interface Requirements {
  /** Clients on other machines must be excluded ("network"), or at least those of other processes ("machine"). */
  readonly scope?: "machine" | "network" | undefined;
  /** Grants in arrival order. */
  readonly order?: "fifo" | undefined;
  /** A token that a resource can check. */
  readonly fencing?: boolean | undefined;
  readonly shared?: boolean | undefined;
  readonly counted?: boolean | undefined;
  /** Waiters are told rather than asking again and again. */
  readonly wake?: "push" | undefined;
  /** Faults after which there must still be one holder at most. */
  readonly survives?: readonly Fault[] | undefined;
}

const width = { process: 0, machine: 1, network: 2 };
const faults: readonly unknown[] = [
  "process-restart",
  "store-restart",
  "store-pause",
  "fail-over",
  "clock-step",
  "eviction",
] satisfies Fault[];

/** What may be demanded under each key, for the check and for the message. */
const demands: {
  readonly [Key in keyof Required<Requirements>]: readonly [allowed: string, (asked: unknown) => boolean];
} = {
  scope: ['"machine" or "network"', (asked) => asked === "machine" || asked === "network"],
  order: ['"fifo"', (asked) => asked === "fifo"],
  fencing: ["true or false", isFlag],
  shared: ["true or false", isFlag],
  counted: ["true or false", isFlag],
  wake: ['"push"', (asked) => asked === "push"],
  survives: [
    `a list of ${faults.join(", ")}`,
    (asked) => Array.isArray(asked) && asked.every((fault) => faults.includes(fault)),
  ],
};

const queues = "use a store with a queue such as redis, postgres, etcd";

/** Each demand: what a store lacks, or null if it has it or nobody asked. */
const checks: Readonly<Record<keyof Requirements, (asked: Requirements, traits: Traits) => string | null>> = {
  scope: ({ scope }, traits) => {
    if (scope === undefined || width[traits.scope] >= width[scope]) return null;
    const instead = scope === "machine" ? "sqlite or a server" : "a server such as redis, postgres, etcd";
    return `it excludes only clients of the same ${traits.scope}; use ${instead}`;
  },
  order: ({ order }, traits) =>
    order === undefined || traits.order === order ? null : `it keeps no order; ${queues}`,
  fencing: ({ fencing }, traits) =>
    fencing && traits.tokens === null ? `its locks carry no token; ${queues}` : null,
  shared: ({ shared }, traits) => (shared && !traits.shared ? `it has no shared locks; ${queues}` : null),
  counted: ({ counted }, traits) => (counted && !traits.counted ? `it has no semaphores; ${queues}` : null),
  wake: ({ wake }, traits) =>
    wake === undefined || traits.wake === wake
      ? null
      : "its waiters have to poll; use a store that pushes, such as redis, postgres, etcd",
  survives: ({ survives = [] }, traits) => {
    const broken = survives.filter((fault) => traits.exclusivityBrokenBy.includes(fault));
    if (broken.length === 0) return null;
    return `two may hold at once after: ${broken.join(", ")}; use a consensus store such as etcd or zookeeper`;
  },
};

/** Refuses a store that lacks what is demanded. */
export function demand(backend: string, traits: Traits, requirements: Requirements): void {
  for (const key of Object.keys(asObject(requirements, "require"))) {
    if (!isDemand(key)) {
      throw invalid(`require has no ${JSON.stringify(key)}; it has ${Object.keys(checks).join(", ")}`);
    }
    if (requirements[key] === undefined) continue;
    const [allowed, allows] = demands[key];
    if (!allows(requirements[key])) throw invalid(`require.${key} must be ${allowed}`);
    const lack = checks[key](requirements, traits);
    if (lack !== null) {
      throw new LockError("LOCK_UNSUPPORTED", `${backend} does not meet require.${key}: ${lack}`, {
        backend,
      });
    }
  }
}

function isFlag(asked: unknown): boolean {
  return typeof asked === "boolean";
}

function isDemand(key: string): key is keyof Requirements {
  return Object.hasOwn(checks, key);
}
