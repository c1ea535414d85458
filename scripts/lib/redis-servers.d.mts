/** The types of redis-servers.mjs, and of what tests use beside it. */

/** A server process; see server-process.mjs. */
export interface Server {
  readonly pid: number | undefined;
  readonly folder: string;
  readonly output: string;
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  remove(): Promise<void>;
  cpuMs(): Promise<number>;
}

/** A server and where it listens. */
export interface Started {
  readonly server: Server;
  readonly port: number;
}

/** One direction of a proxy; see tcp-proxy.mjs. */
export interface Lane {
  delayMs: number;
  jitterMs: number;
  swallow: boolean;
}

/** A proxy in front of one server; see tcp-proxy.mjs. */
export interface Proxy {
  readonly port: number;
  readonly connections: number;
  up: Lane;
  down: Lane;
  refuse: boolean;
  blackhole(on?: boolean): void;
  resetAll(): void;
  heal(): void;
  close(): Promise<void>;
}

export function ask(port: number, ...words: readonly string[]): Promise<string>;
export function startRedis(options?: {
  port?: number;
  args?: readonly string[];
  env?: NodeJS.ProcessEnv;
}): Promise<Started>;
export function startSentinel(options?: {
  replicas?: number;
  sentinels?: number;
}): Promise<{ name: string; servers: readonly Started[]; sentinels: readonly Started[] }>;
export function startCluster(options?: {
  nodes?: number;
  replicas?: 0 | 1;
  nodeTimeoutMs?: number;
}): Promise<{ servers: readonly Started[] }>;
export function startProxy(targetPort: number): Promise<Proxy>;
