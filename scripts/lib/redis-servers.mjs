/** The Redis servers of src/verify/servers for tests and benches, from the build. */
export { ask, startCluster, startProxy, startRedis, startSentinel } from "../../dist/verify/servers/redis.js";
