/** What a caller may demand of a store, and the refusal that says why a store cannot do it. */
import type { Fault, Traits } from "./backend.ts";
import { invalid, LockError } from "./errors.ts";

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

const scopes = ["process", "machine", "network"] as const;
const faults: readonly unknown[] = [
  "process-restart",
  "store-restart",
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

/** Each demand: what a store lacks, or null if it has it. */
const checks: {
  [Key in keyof Required<Requirements>]: (
    asked: NonNullable<Requirements[Key]>,
    traits: Traits,
  ) => string | null;
} = {
  scope: (asked, traits) =>
    scopes.indexOf(traits.scope) >= scopes.indexOf(asked)
      ? null
      : `it excludes only clients of the same ${traits.scope}; use ${asked === "machine" ? "sqlite or a server" : "a server such as redis, postgres, etcd"}`,
  order: (_asked, traits) =>
    traits.order === "fifo"
      ? null
      : "it keeps no order; use a store with a queue such as redis, postgres, etcd",
  fencing: (asked, traits) =>
    !asked || traits.tokens !== null
      ? null
      : "its locks carry no token; use a store with a queue such as redis, postgres, etcd",
  shared: (asked, traits) =>
    !asked || traits.shared
      ? null
      : "it has no shared locks; use a store with a queue such as redis, postgres, etcd",
  counted: (asked, traits) =>
    !asked || traits.counted
      ? null
      : "it has no semaphores; use a store with a queue such as redis, postgres, etcd",
  wake: (_asked, traits) =>
    traits.wake === "push"
      ? null
      : "its waiters have to poll; use a store that pushes, such as redis, postgres, etcd",
  survives: (asked, traits) => {
    const broken = asked.filter((fault) => traits.exclusivityBrokenBy.includes(fault));
    return broken.length === 0
      ? null
      : `two may hold at once after: ${broken.join(", ")}; use a consensus store such as etcd or zookeeper`;
  },
};

/** Refuses a store that lacks what is demanded. */
export function demand(backend: string, traits: Traits, requirements: Requirements): void {
  for (const [key, asked] of Object.entries(requirements)) {
    if (asked === undefined) continue;
    if (!isCheck(key))
      throw invalid(`require has no ${JSON.stringify(key)}; it has ${Object.keys(checks).join(", ")}`);
    const [allowed, allows] = demands[key];
    if (!allows(asked)) throw invalid(`require.${key} must be ${allowed}`);
    const lack = check(key, requirements, traits);
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

function isCheck(key: string): key is keyof Requirements {
  return Object.hasOwn(checks, key);
}

function check<Key extends keyof Requirements>(
  key: Key,
  requirements: Requirements,
  traits: Traits,
): string | null {
  const asked = requirements[key];
  return asked === undefined ? null : checks[key](asked, traits);
}
