/** Where the servers are: reads and checks the usual "host:port,host:port/chroot". */

/** One server. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

/** Servers of one ensemble, and the node below which all paths of the client lie. */
export interface Ensemble {
  readonly hosts: readonly Host[];
  /** "" or a path without a slash at its end. */
  readonly chroot: string;
}

const defaultPort = 2181;

/** Reads a connect string; throws a TypeError that says what is wrong with it. */
export function parseEnsemble(text: unknown): Ensemble {
  if (typeof text !== "string") {
    throw new TypeError('the hosts of ZooKeeper are one text, such as "zk1:2181,zk2:2181"');
  }
  const slash = text.indexOf("/");
  const chroot = slash < 0 ? "" : text.slice(slash).replace(/\/+$/, "");
  const hosts = (slash < 0 ? text : text.slice(0, slash)).split(",").map(parseHost);
  if (/\/\/|\/\.{1,2}(?:\/|$)/.test(chroot)) throw new TypeError(`not a path of ZooKeeper: ${chroot}`);
  return { hosts, chroot };
}

function parseHost(text: string): Host {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s@]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > 65_535) {
    throw new TypeError(`not a host of ZooKeeper, such as "zk1:2181": ${JSON.stringify(text)}`);
  }
  return { host, port: number };
}
