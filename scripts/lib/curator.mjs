/** Java programs that use Curator, for tests and benches: compiled, and how they are started. What they say is left to their callers. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const jars = [
  "curator-recipes",
  "curator-framework",
  "curator-client",
  "zookeeper",
  "zookeeper-jute",
  "guava",
  "slf4j-api",
  "slf4j-simple",
].map((name) => `/usr/share/java/${name}.jar`);

/**
 * Compiles a program into a folder.
 * @param {URL} source
 * @param {string} folder
 */
export async function compileCurator(source, folder) {
  await promisify(execFile)("javac", ["-d", folder, "-cp", jars.join(":"), fileURLToPath(source)]);
}

/**
 * What `java` is given to run a program from a folder, without a log; its own arguments follow.
 * @param {string} folder
 * @param {string} program
 */
export function curatorArguments(folder, program) {
  const silent = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off";
  return [silent, "-cp", [folder, ...jars].join(":"), program];
}
