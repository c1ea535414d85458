/** What tests in TypeScript use of this folder, with types of its own in for-tests.d.mts: re-exports only. */
export { startEtcd } from "./etcd-server.mjs";
export { freePorts, makeFolder, removeFolder } from "./server-process.mjs";
export { TcpProxy } from "./tcp-proxy.mjs";
