/** Reads `zookeeper://user:password@h1:2181,h2:2181/chroot` and, with TLS, `zookeepers://h1:2281?ca=/path` into options; it asks no server. */
import { invalid } from "../../core/errors.ts";
import { certificatesOf, parametersOf, tlsParameters, unescaped } from "../../core/url-parts.ts";
import type { ZooKeeperOptions } from "./index.ts";

const pattern = /^(zookeepers?):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/;

/**
 * Options for zookeeperBackend from "zookeeper://user:password@h1:2181,h2:2181/chroot"; the chroot is optional, and so is who we are.
 * With "zookeepers://" over TLS: `?ca=`, `cert=` and `key=` name files, `servername=` the name in the servers' certificate.
 * Throws a TypeError on a URL that says something else; its message never shows the URL, which may have a password.
 */
export function zookeeperUrl(url: string): ZooKeeperOptions {
  const [, scheme, login, servers = "", chroot = "", query = ""] = pattern.exec(url) ?? [];
  if (scheme === undefined) throw invalid("a URL of ZooKeeper is zookeeper://host:2181,host:2181/chroot");
  const parameters = parametersOf("zookeeper", query, tlsParameters);
  const secure = scheme === "zookeepers";
  const [stray] = secure ? [] : parameters.keys();
  if (stray !== undefined) throw invalid(`zookeeper: ${stray} in a URL is for TLS, with zookeepers://`);
  if (secure && !servers.split(",").every((server) => /:\d+$/.test(server))) {
    throw invalid("zookeeper: for TLS there is no usual port: write zookeepers://host:port,host:port");
  }
  return {
    hosts: servers + chroot,
    ...(login === undefined
      ? {}
      : { auth: { scheme: "digest", secret: unescaped("zookeeper", "login", login) } }),
    ...(secure ? { tls: certificatesOf("zookeeper", parameters) } : {}),
  };
}
