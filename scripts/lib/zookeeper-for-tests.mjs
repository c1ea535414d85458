/** What the tests of ZooKeeper use of these scripts, in one place that has types for TypeScript. Re-exports only. */
export { compileCurator, curatorArguments } from "./curator.mjs";
export { TcpProxy } from "./tcp-proxy.mjs";
export { javaFlags, startZooKeeper } from "./zookeeper-server.mjs";
