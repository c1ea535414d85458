/** The types of zookeeper-for-tests.mjs: what each of these does is written where it is defined. */

export interface ZooOptions {
  readonly tickMs?: number;
  readonly maxSessionMs?: number;
  readonly containerMs?: number;
  readonly durable?: boolean;
  readonly settings?: readonly string[];
  readonly between?: (from: number, to: number, port: number) => Promise<number>;
}

export interface ZooServer {
  readonly folder: string;
  readonly port: number;
  ask(word: string): Promise<string>;
  mode(): Promise<string>;
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  remove(): Promise<void>;
}

export function compileCurator(source: URL, folder: string): Promise<void>;
export function curatorArguments(folder: string, program: string): string[];

export const javaFlags: readonly string[];
export function startZooKeeper(count: number, options?: ZooOptions): Promise<ZooServer[]>;

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
