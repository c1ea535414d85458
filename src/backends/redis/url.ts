/** Reads the URLs that name a Redis: which servers, who we are, and options; connects to nothing. */
import { invalid } from "../../core/errors.ts";
import { type Certificates, certificatesOf, tlsParameters, unescaped } from "../../core/url-parts.ts";

/** What a URL says. */
export interface RedisAddress {
  readonly kind: "server" | "sentinel" | "cluster";
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Whom to trust and who we are, if it speaks TLS. */
  readonly tls: Certificates | null;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  /** Which primary the Sentinels watch. */
  readonly primary: string;
  readonly options: ReadonlyMap<string, string>;
}

const kinds: ReadonlyMap<string, RedisAddress["kind"]> = new Map([
  ["redis", "server"],
  ["rediss", "server"],
  ["redis+sentinel", "sentinel"],
  ["rediss+sentinel", "sentinel"],
  ["redis+cluster", "cluster"],
  ["rediss+cluster", "cluster"],
]);

/** Options that a URL may carry after "?". */
const optionNames = [
  "prefix",
  "deadlineMs",
  "replicas",
  "aof",
  "confirmWithinMs",
  "health",
  "client",
  "sentinelUsername",
  "sentinelPassword",
];

/** Options of one that speaks TLS. */
const secureNames = [...optionNames, ...tlsParameters];

/** Reads a URL. The messages of its errors show no part of it that may be secret. */
export function readRedisUrl(url: string): RedisAddress {
  const match = /^([a-z+]+):\/\/(?:([^@/?]*)@)?([^/?]*)(\/[^?]*)?(?:\?(.*))?$/.exec(url);
  const [, scheme = "", login, hosts = "", path = "", query = ""] = match ?? [];
  const kind = kinds.get(scheme);
  if (kind === undefined) {
    throw invalid("a URL of Redis looks like redis://user:password@host:6379/0", { backend: "redis" });
  }
  const [username, password] = readLogin(login);
  const parts = path.split("/").filter((part) => part !== "");
  if (kind === "sentinel" && parts.length === 0) {
    throw invalid("say which primary: redis+sentinel://host:26379/<name of the primary>", {
      backend: "redis",
    });
  }
  const primary = kind === "sentinel" ? decoded(parts.shift() ?? "", "name of the primary") : "";
  const port = kind === "sentinel" ? 26_379 : 6_379;
  const isSecure = scheme.startsWith("rediss");
  const options = readOptions(query, isSecure ? secureNames : optionNames);
  return {
    kind,
    tls: isSecure ? certificatesOf("redis", options) : null,
    hosts: (hosts === "" ? "127.0.0.1" : hosts).split(",").map((host) => readHost(host, port)),
    username,
    password,
    db: readDb(parts[0], kind),
    primary,
    options,
  };
}

function readLogin(login: string | undefined): readonly [string | undefined, string | undefined] {
  if (login === undefined || login === "") return [undefined, undefined];
  const colon = login.indexOf(":");
  // A user alone is one without a password.
  if (colon < 0) return [decoded(login, "user"), undefined];
  const username = decoded(login.slice(0, colon), "user");
  return [username === "" ? undefined : username, decoded(login.slice(colon + 1), "password")];
}

function decoded(text: string, what: string): string {
  return unescaped("redis", what, text);
}

function readHost(text: string, defaultPort: number): { host: string; port: number } {
  const match = /^(\[[^\]]+\]|[^:@]+)(?::(\d+))?$/.exec(text);
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  if (match?.[1] === undefined || port < 1 || port > 65_535) {
    const what = "a host in a URL of Redis is a name or an address, and a port after a colon";
    throw invalid(`${what}; escape what a user or password has of / : @ ? %`, { backend: "redis" });
  }
  return { host: match[1].replace(/^\[|\]$/g, ""), port };
}

function readDb(part: string | undefined, kind: RedisAddress["kind"]): number {
  if (part === undefined) return 0;
  if (!/^\d+$/.test(part))
    throw invalid("the path of a URL of Redis is a database's number", { backend: "redis" });
  if (kind === "cluster" && part !== "0")
    throw invalid("a cluster has only database 0", { backend: "redis" });
  return Number(part);
}

function readOptions(query: string, known: readonly string[]): ReadonlyMap<string, string> {
  const options = new Map(new URLSearchParams(query));
  for (const name of options.keys()) {
    if (!known.includes(name)) {
      throw invalid(`a URL of Redis has no option ${JSON.stringify(name)}; it has ${known.join(", ")}`, {
        backend: "redis",
      });
    }
  }
  return options;
}
