/**
 * The way of one client to the store: where its address names TCP servers, a proxy of its own in front of each, so that a
 * fault of the network hits nobody else.
 */
import { TcpProxy, type Target } from "../servers/tcp-proxy.ts";

interface Scheme {
  readonly port: number;
  /** Whether requests may be repeated on another connection; otherwise why not. */
  readonly replay: true | string;
  /** Why an answer about state need not be exact; absent where it is. */
  readonly loose?: string;
}

const session = "a request of this protocol makes sense on its own connection only";

/** Schemes whose servers can stand behind a proxy. */
const schemes: Readonly<Record<string, Scheme>> = {
  "redis:": { port: 6379, replay: true },
  "redlock:": { port: 6379, replay: true },
  "postgres:": { port: 5432, replay: session },
  "postgresql:": { port: 5432, replay: session },
  "mysql:": { port: 3306, replay: session },
  "mariadb:": { port: 3306, replay: session },
  "etcd:": { port: 2379, replay: session },
  "zookeeper:": {
    port: 2181,
    replay: session,
    loose: "a server may lag behind, and a listing is made of several reads",
  },
};

const form = /^([a-z][a-z0-9+.-]*:)\/\/(?:([^/?#]*)@)?([^/?#]*)(.*)$/s;

/** What can be said of the way to a store before anybody goes it. */
export interface WayFinding {
  /** Why no proxy can stand in between; null if one can. */
  readonly closed: string | null;
  /** Why requests cannot be repeated; null if they can. */
  readonly noReplay: string | null;
}

/** Why answers of a store about its state need not be exact; null if they are. */
export function looseAnswers(url: string): string | null {
  const [, scheme = ""] = form.exec(url) ?? [];
  return schemes[scheme]?.loose ?? null;
}

/** Looks at an address. */
export function findWay(url: string): WayFinding {
  const [, scheme = "", , hosts = "", rest = ""] = form.exec(url) ?? [];
  const known = schemes[scheme];
  const closed = closedBy(scheme, rest, known !== undefined && hosts !== "");
  if (known === undefined || closed !== null) return { closed, noReplay: closed };
  return { closed: null, noReplay: known.replay === true ? null : known.replay };
}

/** Why no proxy can stand in front of a store; null if one can. */
function closedBy(scheme: string, rest: string, isPlain: boolean): string | null {
  const isSecure = /^(?:rediss|redlocks|etcds|zookeepers)\b/.test(scheme);
  if (isSecure || /[?&](?:ssl|sslmode|tls)=(?!disable|false|0)/.test(rest)) {
    return "behind a proxy its certificate would not fit";
  }
  if (/\+(?:sentinel|cluster):$/.test(scheme))
    return "its clients find the servers by themselves, past a proxy";
  return isPlain ? null : "it is not reached over a plain TCP address";
}

/** The servers that an address names. */
function targetsOf(url: string): readonly Target[] {
  const [, scheme = "", , hosts = ""] = form.exec(url) ?? [];
  const port = schemes[scheme]?.port ?? 0;
  return hosts.split(",").map((text) => {
    const [, host = text, own] = /^(\[[^\]]+\]|[^:]*)(?::(\d+))?$/.exec(text) ?? [];
    return { host: host.replace(/^\[|\]$/g, ""), port: own === undefined ? port : Number(own) };
  });
}

/** The proxies of one client. */
export class Route {
  readonly url: string;
  readonly proxies: readonly TcpProxy[];

  private constructor(url: string, proxies: readonly TcpProxy[]) {
    this.url = url;
    this.proxies = proxies;
  }

  /** Opens a way to the store; without proxies where none can stand in between. */
  static async open(url: string): Promise<Route> {
    if (findWay(url).closed !== null) return new Route(url, []);
    const proxies = await Promise.all(targetsOf(url).map((target) => TcpProxy.start(target)));
    const [, scheme = "", login, , rest = ""] = form.exec(url) ?? [];
    const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join(",");
    return new Route(`${scheme}//${login === undefined ? "" : `${login}@`}${hosts}${rest}`, proxies);
  }

  /** Leads to other servers from now on, in the order of the first ones. */
  leadTo(targets: readonly Target[]): void {
    this.proxies.forEach((proxy, index) => {
      const target = targets[index];
      if (target !== undefined) proxy.leadTo(target);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}
