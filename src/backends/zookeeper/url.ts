/** Reads `zookeeper://user:password@h1:2181,h2:2181/chroot` and, with TLS, `zookeepers://h1:2281?ca=/path` into options; it asks no server. */
import { readFileSync } from "node:fs";
import { type ConnectionOptions, createSecureContext } from "node:tls";
import { invalid } from "../../core/errors.ts";
import type { ZooKeeperOptions } from "./index.ts";

const pattern = /^(zookeepers?):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/;
const known = ["ca", "cert", "key", "servername"];

/**
 * Options for zookeeperBackend from "zookeeper://user:password@h1:2181,h2:2181/chroot"; the chroot is optional, and so is who we are.
 * With "zookeepers://" over TLS: `?ca=`, `cert=` and `key=` name files, `servername=` the name in the servers' certificate.
 * Throws a TypeError on a URL that says something else; its message never shows the URL, which may have a password.
 */
export function zookeeperUrl(url: string): ZooKeeperOptions {
  const [, scheme, login, servers = "", chroot = "", query = ""] = pattern.exec(url) ?? [];
  if (scheme === undefined) throw invalid("a URL of ZooKeeper is zookeeper://host:2181,host:2181/chroot");
  const parameters = parametersOf(query);
  const secure = scheme === "zookeepers";
  const [stray] = secure ? [] : parameters.keys();
  if (stray !== undefined) throw invalid(`zookeeper: ${stray} in a URL is for TLS, with zookeepers://`);
  if (secure && !servers.split(",").every((server) => /:\d+$/.test(server))) {
    throw invalid("zookeeper: for TLS there is no usual port: write zookeepers://host:port,host:port");
  }
  return {
    hosts: servers + chroot,
    ...(login === undefined ? {} : { auth: { scheme: "digest", secret: secretOf(login) } }),
    ...(secure ? { tls: tlsOf(parameters) } : {}),
  };
}

function parametersOf(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!known.includes(name)) {
      throw invalid(
        `zookeeper: the URL has no parameter ${JSON.stringify(name)}; it has ${known.join(", ")}`,
      );
    }
    if (parameters.has(name)) throw invalid(`zookeeper: the URL has ${name} twice`);
    parameters.set(name, value);
  }
  return parameters;
}

function secretOf(login: string): string {
  try {
    return decodeURIComponent(login);
  } catch {
    throw invalid("zookeeper: the login in the URL has a % that is not followed by two hex digits of UTF-8");
  }
}

/** Certificates are named by their files. */
function tlsOf(parameters: ReadonlyMap<string, string>): ConnectionOptions {
  const [ca, cert, key] = ["ca", "cert", "key"].map((name) => fileOf(name, parameters.get(name)));
  const servername = parameters.get("servername");
  if ((cert === undefined) !== (key === undefined)) throw invalid("zookeeper: cert and key go together");
  const certificates = { ...(ca && { ca }), ...(cert && key && { cert, key }) };
  try {
    // As authority, what is no certificate would be passed over, and nobody trusted: so it is read as a certificate of ours.
    if (ca !== undefined) createSecureContext({ cert: ca });
    createSecureContext(certificates);
  } catch (cause) {
    const files = "ca and cert are to be certificates in PEM, and key the key of cert";
    throw invalid(`zookeeper: ${files}: ${messageOf(cause)}`);
  }
  return { ...certificates, ...(servername === undefined ? {} : { servername }) };
}

function fileOf(name: string, path: string | undefined): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw invalid(`zookeeper: the file of ${name} cannot be read: ${messageOf(cause)}`);
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
