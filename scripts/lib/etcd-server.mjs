/** The etcd servers of src/verify/servers for tests and benches, from the build. */
export { EtcdNode, etcdNode, startEtcd } from "../../dist/verify/servers/etcd.js";
