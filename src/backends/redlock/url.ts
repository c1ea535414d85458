/** Reads the URLs that name several independent servers; connects to nothing. */
import { invalid } from "../../core/errors.ts";
import { tlsParameters } from "../../core/url-parts.ts";
import { type RedisAddress, readRedisUrl } from "../redis/url.ts";

/** Options that a URL may carry after "?". */
const optionNames = ["prefix", "deadlineMs", "quarantineMs", "fencing", "health", "client"];

/** What a URL says. */
export interface RedlockAddress {
  /** One for each node. */
  readonly nodes: readonly RedisAddress[];
  readonly options: ReadonlyMap<string, string>;
}

/** Reads redlock://user:password@h1:6379,h2,h3/0 or rediss-like redlocks://. User and database are the same for all nodes. */
export function readRedlockUrl(url: string): RedlockAddress {
  const match = /^redlock(s?):(\/\/[^?]*)(?:\?(.*))?$/.exec(url);
  if (match === null) {
    throw invalid("a URL of redlock looks like redlock://h1:6379,h2:6379,h3:6379", { backend: "redlock" });
  }
  const [, secure = "", rest = "", query = ""] = match;
  const options = new Map(new URLSearchParams(query));
  const known = secure === "" ? optionNames : [...optionNames, ...tlsParameters];
  for (const name of options.keys()) {
    if (known.includes(name)) continue;
    throw invalid(`a URL of redlock has no option ${JSON.stringify(name)}; it has ${known.join(", ")}`, {
      backend: "redlock",
    });
  }
  const ofNodes = new URLSearchParams([...options].filter(([name]) => name === "client" || isOfTls(name)));
  const address = readRedisUrl(`redis${secure}:${rest}?${ofNodes.toString()}`);
  return { nodes: address.hosts.map((host) => ({ ...address, hosts: [host] })), options };
}

function isOfTls(name: string): boolean {
  return tlsParameters.some((known) => known === name);
}
