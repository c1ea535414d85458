/** The types of for-tests.mjs: what each of these does is written where it is defined. */

export function makeFolder(name: string): Promise<string>;
export function removeFolder(folder: string): Promise<void>;
export function freePorts(count: number): Promise<number[]>;

export interface ServerProcess {
  readonly folder: string;
  readonly pid: number | undefined;
  readonly output: string;
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  remove(): Promise<void>;
  cpuMs(): Promise<number>;
}

export interface EtcdOptions {
  readonly args?: readonly string[];
  readonly scheme?: "http" | "https";
  readonly ready?: (endpoint: string) => Promise<unknown>;
}

export interface EtcdNode extends ServerProcess {
  readonly port: number;
  readonly endpoint: string;
  metric(name: string): Promise<number>;
}

export function startEtcd(count: number, options?: EtcdOptions): Promise<EtcdNode[]>;

export interface Lane {
  delayMs: number;
  jitterMs: number;
  swallow: boolean;
}

export class TcpProxy {
  up: Lane;
  down: Lane;
  refuse: boolean;
  static start(targetPort: number, port?: number): Promise<TcpProxy>;
  get port(): number;
  get connections(): number;
  blackhole(on?: boolean): void;
  resetAll(): void;
  heal(): void;
  close(): Promise<void>;
}
