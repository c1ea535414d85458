/** The proxy of src/verify/servers for tests and benches, from the build. */
export { TcpProxy } from "../../dist/verify/servers/tcp-proxy.js";
