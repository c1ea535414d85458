/** Throwaway servers for tests and benches: what src/verify/servers has, from the build. */
export {
  freePorts,
  makeFolder,
  removeFolder,
  ServerProcess,
} from "../../dist/verify/servers/server-process.js";
