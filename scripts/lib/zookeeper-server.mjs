/** The ZooKeeper servers of src/verify/servers for tests and benches, from the build. */
export { askServer, javaFlags, startZooKeeper, ZooServer } from "../../dist/verify/servers/zookeeper.js";
