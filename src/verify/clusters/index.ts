/** The throwaway clusters by their names. */
import type { Cluster } from "./cluster.ts";
import { etcdCluster } from "./etcd.ts";
import type { ClusterName } from "./names.ts";
import { redisCluster, redisFailover, redlockCluster } from "./redis.ts";
import { mysqlCluster, postgresCluster } from "./sql.ts";
import { zookeeperCluster } from "./zookeeper.ts";

export type { Cluster } from "./cluster.ts";

/** Starts each kind of cluster: temporary folders, free ports of the loopback address, nothing left when it is stopped. */
export const clusters: Readonly<Record<ClusterName, () => Promise<Cluster>>> = {
  redis: redisCluster,
  "redis-failover": redisFailover,
  redlock: redlockCluster,
  etcd: etcdCluster,
  zookeeper: zookeeperCluster,
  postgres: postgresCluster,
  mysql: mysqlCluster,
};
