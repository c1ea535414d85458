/** The etcd servers of src/verify/servers for tests and benches, from the build. */
export { EtcdNode, startEtcd } from "../../dist/verify/servers/etcd.js";
