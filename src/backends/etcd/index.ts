/** The etcd backend: locks among all clients of one cluster, and among them and those of Go's concurrency package. */
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { invalid } from "../../core/errors.ts";
import { checkTls } from "../../core/url-parts.ts";
import { EtcdBackend } from "./backend.ts";
import { EtcdClient } from "./client/client.ts";
import type { TlsOptions } from "./client/session.ts";
import { checkStyle, Layout, type NameStyle } from "./layout.ts";
import { readUrl } from "./url.ts";

export { EtcdBackend, etcdTraits, type OwnershipGuard } from "./backend.ts";
export { type NameStyle } from "./layout.ts";
export { type TlsOptions } from "./client/session.ts";

/** Options of etcdBackend. Those given here go before those in the URL. */
export interface EtcdOptions {
  /** `etcd://user:password@h1:2379,h2:2379/prefix/?names=plain`; with `etcds://` over TLS. */
  readonly url?: string | undefined;
  /** The members of the cluster, as `http://host:port`, `https://host:port` or `host:port`. */
  readonly endpoints?: readonly string[] | undefined;
  /**
   * What all keys start with. With an empty prefix the lock "jobs" is the lock that `etcdctl lock jobs` takes.
   * @default "holdfast/"
   */
  readonly prefix?: string | undefined;
  /**
   * How names become keys. `escaped`: "/" and "%" are written as "%2F" and "%25", so that no lock lies within another.
   * `plain`: as they are, for names that other programs use; "a" then also waits for what is below "a/b/".
   * @default "escaped"
   */
  readonly names?: NameStyle | undefined;
  /** Who we are, where the cluster asks for that. */
  readonly auth?: { readonly user: string; readonly password: string } | undefined;
  /** Certificates; used with `https` endpoints. */
  readonly tls?: TlsOptions | undefined;
  /**
   * How long one call may take, in milliseconds.
   * @default 2000
   */
  readonly callMs?: number | undefined;
  /**
   * How long a call that surely was not carried out is tried again, on all members in turn, in milliseconds.
   * @default 5000
   */
  readonly patienceMs?: number | undefined;
  /**
   * How often a member has to give a sign of life, and how long it has for it, in milliseconds.
   * @default 1000
   */
  readonly pingMs?: number | undefined;
  /** Where time comes from: for tests. */
  readonly clock?: Clock | undefined;
}

/** A client of an etcd cluster. It connects when it is first used. */
export function etcdBackend(options: EtcdOptions): EtcdBackend {
  const said = options.url === undefined ? null : readUrl(options.url);
  const { clock = systemClock, patienceMs = 5_000, callMs = 2_000, pingMs = 1_000 } = options;
  if (!(callMs > 0 && pingMs > 0 && patienceMs >= 0)) {
    throw invalid("etcd: callMs, pingMs and patienceMs are numbers of milliseconds");
  }
  const given: unknown = options.endpoints ?? said?.endpoints ?? [];
  if (!Array.isArray(given) || given.length === 0)
    throw invalid("etcd: give at least one endpoint, or a url");
  const endpoints = given.map((endpoint) => endpointOf(String(endpoint)));
  const [auth, tls] = [options.auth ?? said?.auth, options.tls ?? said?.tls];
  checkTls("etcd", tls);
  const layout = new Layout(
    options.prefix ?? said?.prefix ?? "holdfast/",
    checkStyle(options.names ?? said?.names ?? "escaped"),
  );
  const client = new EtcdClient({ endpoints, auth, tls, callMs, pingMs });
  const place = endpoints.map((endpoint) => new URL(endpoint).host).join();
  return new EtcdBackend({ client, layout, clock, patienceMs }, place);
}

function endpointOf(endpoint: string): string {
  const url = /^https?:\/\//.test(endpoint) ? endpoint : `http://${endpoint}`;
  if (!URL.canParse(url) || new URL(url).pathname !== "/")
    throw invalid(`etcd: ${JSON.stringify(endpoint)} is no endpoint; write http://host:2379`);
  return url;
}
