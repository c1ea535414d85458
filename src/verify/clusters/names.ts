/** The names of the throwaway clusters; what each is made of is in the files beside this one. */

/** All of them. */
export const clusterNames = [
  "redis",
  "redis-failover",
  "redlock",
  "etcd",
  "zookeeper",
  "postgres",
  "mysql",
] as const;

/** One of them. */
export type ClusterName = (typeof clusterNames)[number];
