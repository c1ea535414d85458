/** Reads `etcd://user:password@h1:2379,h2:2379/prefix?names=plain` into options. */
import { invalid } from "../../core/errors.ts";
import { certificatesOf, parametersOf, tlsParameters, unescaped } from "../../core/url-parts.ts";
import type { TlsOptions } from "./client/session.ts";
import { checkStyle, type NameStyle } from "./layout.ts";

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
const known = ["names", ...tlsParameters];

/** Throws a TypeError on a URL that says something else; its message never shows the URL, which may have a password. */
export function readUrl(url: string): UrlOptions {
  const [, scheme, login, hosts = "", path = "", query = ""] = pattern.exec(url) ?? [];
  if (scheme === undefined) throw invalid("etcd: the URL must look like etcd://host:2379,host:2379/prefix");
  const parameters = parametersOf("etcd", query, known);
  const secure = scheme === "etcds";
  const stray = secure ? undefined : tlsParameters.find((name) => parameters.has(name));
  if (stray !== undefined) throw invalid(`etcd: ${stray} in a URL is for TLS, with etcds://`);
  const transport = secure ? "https" : "http";
  return {
    endpoints: hosts.split(",").map((host) => `${transport}://${withPort(host)}`),
    ...(path === "" ? {} : { prefix: unescaped("etcd", "path", path.slice(1)) }),
    ...namesOf(parameters.get("names")),
    ...loginOf(login),
    ...(secure ? { tls: certificatesOf("etcd", parameters) } : {}),
  };
}

function withPort(host: string): string {
  if (host === "") throw invalid("etcd: the URL has an empty host");
  return /:\d+$/.test(host) ? host : `${host}:${defaultPort}`;
}

function namesOf(names: string | undefined): { names?: NameStyle } {
  return names === undefined ? {} : { names: checkStyle(names) };
}

function loginOf(login: string | undefined): { auth?: { user: string; password: string } } {
  if (login === undefined || login === "") return {};
  const [user = "", ...password] = login.split(":");
  const decode = (text: string): string => unescaped("etcd", "login", text);
  return { auth: { user: decode(user), password: decode(password.join(":")) } };
}
