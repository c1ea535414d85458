/** The scripts that tests use, as far as they use them: a declaration beside a script would hide it from the type checker. */

declare module "*/scripts/lib/server-process.mjs" {
  export class ServerProcess {
    get folder(): string;
    get pid(): number | undefined;
    get output(): string;
    start(): Promise<void>;
    pause(): void;
    resume(): void;
    kill(): Promise<void>;
    stop(signal?: NodeJS.Signals): Promise<void>;
    remove(): Promise<void>;
  }
}

declare module "*/scripts/lib/postgres-server.mjs" {
  import type { ServerProcess } from "*/scripts/lib/server-process.mjs";

  interface Started {
    readonly server: ServerProcess;
    readonly port: number;
    readonly url: string;
  }
  export function startPostgres(options?: {
    readonly durable?: boolean;
    readonly settings?: readonly string[];
    readonly env?: NodeJS.ProcessEnv;
  }): Promise<Started>;
  export function startPgbouncer(
    serverPort: number,
    mode: "transaction" | "session",
  ): Promise<Pick<Started, "server" | "port">>;
}

declare module "*/scripts/lib/mysql-server.mjs" {
  import type { ServerProcess } from "*/scripts/lib/server-process.mjs";

  interface Started {
    readonly server: ServerProcess;
    readonly port: number;
    readonly url: string;
  }
  export function startMysql(options?: {
    readonly durable?: boolean;
    readonly settings?: readonly string[];
  }): Promise<Started>;
  export function startMysql9(): Promise<Started>;
}

declare module "*/scripts/lib/mysql-9.mjs" {
  export const mysql9: { readonly url: string };
}

declare module "*/scripts/lib/tcp-proxy.mjs" {
  interface Lane {
    delayMs: number;
    jitterMs: number;
    swallow: boolean;
  }
  export class TcpProxy {
    static start(targetPort: number, port?: number): Promise<TcpProxy>;
    up: Lane;
    down: Lane;
    refuse: boolean;
    get port(): number;
    blackhole(on?: boolean): void;
    resetAll(): void;
    heal(): void;
    close(): Promise<void>;
  }
}

declare module "*/scripts/experiments/bounds.mjs" {
  export function withBound(count: number, rounds: number): string;
}
