/** Reads `etcd://user:password@h1:2379,h2:2379/prefix?names=plain` into options. */
import { readFileSync } from "node:fs";
import { invalid } from "../../core/errors.ts";
import type { TlsOptions } from "./client/session.ts";
import type { NameStyle } from "./layout.ts";

/** What a URL may say. */
export interface UrlOptions {
  readonly endpoints: readonly string[];
  readonly prefix?: string;
  readonly names?: NameStyle;
  readonly auth?: { readonly user: string; readonly password: string };
  readonly tls?: TlsOptions;
}

const defaultPort = "2379";
const pattern = /^(etcds?):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/;
const known = ["names", "ca", "cert", "key", "servername"];

/** Throws a TypeError on a URL that says something else; its message never shows the URL, which may have a password. */
export function readUrl(url: string): UrlOptions {
  const [, scheme, login, hosts = "", path = "", query = ""] = pattern.exec(url) ?? [];
  if (scheme === undefined) throw invalid("etcd: the URL must look like etcd://host:2379,host:2379/prefix");
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) {
    if (!known.includes(name)) {
      throw invalid(`etcd: the URL has no parameter ${JSON.stringify(name)}; it has ${known.join(", ")}`);
    }
  }
  const transport = scheme === "etcds" ? "https" : "http";
  return {
    endpoints: hosts.split(",").map((host) => `${transport}://${withPort(host)}`),
    ...(path === "" ? {} : { prefix: decodeURIComponent(path.slice(1)) }),
    ...namesOf(parameters.get("names")),
    ...loginOf(login),
    ...(scheme === "etcds" ? { tls: tlsOf(parameters) } : {}),
  };
}

function withPort(host: string): string {
  if (host === "") throw invalid("etcd: the URL has an empty host");
  return /:\d+$/.test(host) ? host : `${host}:${defaultPort}`;
}

function namesOf(names: string | null): { names?: NameStyle } {
  if (names === null) return {};
  if (names !== "plain" && names !== "escaped") throw invalid('etcd: names must be "escaped" or "plain"');
  return { names };
}

function loginOf(login: string | undefined): { auth?: { user: string; password: string } } {
  if (login === undefined || login === "") return {};
  const [user = "", ...password] = login.split(":");
  return { auth: { user: decodeURIComponent(user), password: decodeURIComponent(password.join(":")) } };
}

/** Certificates are named by their files. */
function tlsOf(parameters: URLSearchParams): TlsOptions {
  const file = (name: string): Buffer | undefined => {
    const path = parameters.get(name);
    return path === null ? undefined : readFileSync(path);
  };
  const servername = parameters.get("servername") ?? undefined;
  const [ca, cert, key] = [file("ca"), file("cert"), file("key")];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    servername,
  };
}
