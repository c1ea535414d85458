/** Where a Redis is, for messages: hosts and ports, never a user or a password. */
import { isObject, property } from "./link.ts";
import type { RedisAddress } from "./url.ts";

/** Where a URL leads to. */
export function placeOfUrl({ hosts, kind, primary }: RedisAddress): string {
  const all = hosts.map(({ host, port }) => hostAndPort(host, port)).join();
  return kind === "sentinel" ? `${primary} of ${all}` : all;
}

/** Where a client that was handed in leads to; undefined where its options do not say. */
export function placeOfClient(client: unknown): string | undefined {
  // Of ioredis: it has host and port also where it does not use them.
  const sentinels = property(client, "options", "sentinels");
  if (Array.isArray(sentinels))
    return listed(sentinels, `${String(property(client, "options", "name"))} of `);
  const nodes = property(client, "startupNodes") ?? property(client, "_options", "rootNodes");
  if (Array.isArray(nodes)) return listed(nodes, "");
  const path = property(client, "options", "path") ?? property(client, "options", "socket", "path");
  return typeof path === "string" ? path : placeOf(property(client, "options"));
}

/** Some of them may be given as URLs, which may have passwords: then nothing is said. */
function listed(servers: readonly unknown[], before: string): string | undefined {
  const places = servers.map(placeOf);
  return places.includes(undefined) ? undefined : before + places.join();
}

/** Host and port of options, as either library has them. */
function placeOf(options: unknown): string | undefined {
  const socket = property(options, "socket");
  const [host, port] = ["host", "port"].map((name) => property(isObject(socket) ? socket : options, name));
  return typeof host === "string" ? hostAndPort(host, Number(port)) : undefined;
}

function hostAndPort(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
