/** What a cluster is whose members can be cut off from each other; the files etcd-namespaces.ts and etcd-proxies.ts make one. */
import type { EtcdNode } from "./etcd.ts";

/** Three etcd members. */
export interface SplitCluster {
  readonly nodes: readonly EtcdNode[];
  /**
   * Cuts a member, counted from 1, off from the other two, in both directions, but not from its clients; or lets it back.
   * One at a time.
   */
  cutOff(place: number, cut?: boolean): Promise<void>;
  /** Ends all and leaves nothing. */
  remove(): Promise<void>;
}

/** Starts a cluster; what was started of one that fails is ended. */
export async function startedOrGone(
  cluster: SplitCluster,
  start: () => Promise<void>,
): Promise<SplitCluster> {
  try {
    await start();
    return cluster;
  } catch (error) {
    await cluster.remove();
    throw error;
  }
}
