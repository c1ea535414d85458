/** Which server a session tries next, and after which pause. */
import { describe, expect, it } from "vitest";
import { Route } from "../../src/backends/zookeeper/client/route.ts";
import { TlsRefusal } from "../../src/backends/zookeeper/client/socket.ts";

const hosts = ["zk1", "zk2", "zk3"].map((host) => ({ host, port: 2181 }));
const down = new Error("refused");

function pausesAfter(route: Route, failures: number): number[] {
  return Array.from({ length: failures }, () => {
    route.failed(down);
    return route.pauseMs();
  });
}

describe("a route", () => {
  it("begins anywhere and goes round", () => {
    const route = new Route(hosts, () => 0.5);
    const names = Array.from({ length: 5 }, () => route.next().host);
    expect(names).toEqual(["zk2", "zk3", "zk1", "zk2", "zk3"]);
  });

  it("tries all servers twice at once, and then ever later, up to a bound", () => {
    const one = pausesAfter(new Route(hosts.slice(0, 1), () => 0.5), 12);
    expect(one).toEqual([0, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000]);
    const three = pausesAfter(new Route(hosts, () => 0.5), 12);
    expect(three).toEqual([0, 0, 0, 0, 0, 10, 10, 10, 20, 20, 20, 40]);
  });

  it("has no pause again once a server was reached", () => {
    const route = new Route(hosts.slice(0, 1), () => 0.5);
    pausesAfter(route, 5);
    route.reached();
    expect(route.pauseMs()).toBe(0);
    expect(pausesAfter(route, 2)).toEqual([0, 10]);
  });

  it("is refused when TLS was not to be had with any, one after the other", () => {
    const route = new Route(hosts, () => 0.5);
    const refusal = new TlsRefusal("no");
    for (const cause of [refusal, refusal, down, refusal, refusal]) route.failed(cause);
    expect(route.refused).toBe(false);
    route.failed(refusal);
    expect(route.refused).toBe(true);
    route.reached();
    expect(route.refused).toBe(false);
  });
});
