/** The ways in which members of etcd can be cut off from each other on this machine, for tests of both. */
import { canMakeNamespaces, NamespaceCluster } from "../../src/verify/servers/etcd-namespaces.ts";
import { ProxyCluster } from "../../src/verify/servers/etcd-proxies.ts";
import type { SplitCluster } from "../../src/verify/servers/etcd-split.ts";

type Way = readonly [name: string, start: () => Promise<SplitCluster>];

const proxies: Way = ["proxies", () => ProxyCluster.start()];
const namespaces: Way = ["network namespaces", () => NamespaceCluster.start()];

/** By proxies always; by network namespaces for root on Linux. */
export const splitWays: readonly Way[] = (await canMakeNamespaces()) ? [proxies, namespaces] : [proxies];
