/** What URLs and options of several stores have in common: parameters, text that was escaped, and certificates, which a URL names by their files. */
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { invalid } from "./errors.ts";

/** Certificates as `node:tls` takes them. */
export interface Certificates {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
  servername?: string;
}

/** The parameters about TLS. */
export const tlsParameters = ["ca", "cert", "key", "servername"] as const;

/** Reads what follows "?": each parameter is known, and there once. */
export function parametersOf(
  store: string,
  query: string,
  known: readonly string[],
): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!known.includes(name)) {
      throw invalid(`${store}: the URL has no parameter ${JSON.stringify(name)}; it has ${known.join(", ")}`);
    }
    if (parameters.has(name)) throw invalid(`${store}: the URL has ${name} twice`);
    parameters.set(name, value);
  }
  return parameters;
}

/** Reads a URL as the clients of databases do; the message does not show it, since it may have a password. */
export function readUrl(store: string, url: string, base?: string): URL {
  try {
    return new URL(url, base);
  } catch {
    throw invalid(
      `${store}: the URL cannot be read: look at its host and port, and escape what a user or password has of / : @ # ? %`,
    );
  }
}

/** Where a URL leads to, for messages: host, port and database; undefined if it names no host. */
export function placeOfUrl(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { host, pathname, search, hash } = new URL(url);
  // With an @ behind it, it is part of a password that somebody forgot to escape.
  return host === "" || (pathname + search + hash).includes("@") ? undefined : host + pathname;
}

/** Text as it was before it was escaped; the message does not show it, since it may be a password. */
export function unescaped(store: string, what: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(`${store}: the ${what} in the URL has a % that is not followed by two hex digits of UTF-8`);
  }
}

/** The certificates that parameters name. Refuses files that cannot be read or say something else. */
export function certificatesOf(store: string, parameters: ReadonlyMap<string, string>): Certificates {
  const [ca, cert, key] = ["ca", "cert", "key"].map((name) => fileOf(store, name, parameters.get(name)));
  const servername = parameters.get("servername");
  if ((cert === undefined) !== (key === undefined)) throw invalid(`${store}: cert and key go together`);
  const certificates = { ...(ca && { ca }), ...(cert && key && { cert, key }) };
  try {
    // As authority, what is no certificate would be passed over, and nobody trusted: so it is read as a certificate of ours.
    if (ca !== undefined) createSecureContext({ cert: ca });
    createSecureContext(certificates);
  } catch (cause) {
    const files = "ca and cert are to be certificates in PEM, and key the key of cert";
    throw invalid(`${store}: ${files}: ${messageOf(cause)}`);
  }
  return { ...certificates, ...(servername === undefined ? {} : { servername }) };
}

/** Refuses options of TLS that no connection can be begun with. */
export function checkTls(store: string, tls: SecureContextOptions | undefined): void {
  try {
    if (tls !== undefined) createSecureContext(tls);
  } catch (cause) {
    throw invalid(`${store}: tls cannot be used: ${messageOf(cause)}`);
  }
}

function fileOf(store: string, name: string, path: string | undefined): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw invalid(`${store}: the file of ${name} cannot be read: ${messageOf(cause)}`);
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
