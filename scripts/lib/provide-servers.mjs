/** Makes sure that the servers which tests need are there: given by URL, found, or installed; starting them is left to the tests. */
import { access, chmod, readdir, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fetchPackages } from "./fetch-packages.mjs";
import { Failure, mustRun } from "./run.mjs";

/** @typedef {import("../servers.mjs").Server} Server */

/**
 * Gives the environment in which tests find these servers, installing what is missing where
 * that is possible: as root on Debian. Otherwise it fails, naming what is missing and how to get it.
 *
 * @param {readonly Server[]} needed
 * @returns {Promise<NodeJS.ProcessEnv>}
 */
export async function provideServers(needed) {
  const toFind = needed.filter((server) => server.url === undefined || !process.env[server.url]);
  for (const server of needed) {
    if (!toFind.includes(server)) console.log(`${server.name}: the one given by ${server.url}`);
  }
  let found = await look(toFind);
  if (found.missing.length > 0) {
    const toInstall = found.missing.filter(({ server }) => server.fetch === undefined);
    if (toInstall.length > 0) await install(toInstall);
    for (const each of found.missing) await fetch(each);
    found = await look(toFind);
    if (found.missing.length > 0)
      throw new Failure(explain(found.missing, "still not there after installing"));
  }
  for (const server of toFind) console.log(`${server.name}: installed`);
  return { ...process.env, PATH: [process.env["PATH"], ...found.folders].join(delimiter) };
}

/** @typedef {{ server: Server, binaries: string[] }} Missing */

/**
 * What is missing, and in which folders the programs of the rest are.
 *
 * @param {readonly Server[]} servers
 */
async function look(servers) {
  /** @type {Missing[]} */
  const missing = [];
  /** @type {Set<string>} */
  const folders = new Set();
  for (const server of servers) {
    /** @type {string[]} */
    const binaries = [];
    for (const binary of server.binaries) {
      const path = await locate(binary, server.folders ?? []);
      if (path === undefined) binaries.push(binary);
      else if (!isAbsolute(binary)) folders.add(dirname(path));
    }
    if (binaries.length > 0) missing.push({ server, binaries });
  }
  return { missing, folders: [...folders] };
}

/**
 * @param {string} binary
 * @param {readonly string[]} extraFolders
 */
async function locate(binary, extraFolders) {
  if (isAbsolute(binary)) return (await exists(binary)) ? binary : undefined;
  const onPath = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const extra = await Promise.all(["/usr/sbin", "/usr/local/sbin", ...extraFolders].map(expand));
  for (const folder of [...onPath, ...extra.flat()]) {
    if (await exists(join(folder, binary))) return join(folder, binary);
  }
  return undefined;
}

/** The folders a pattern with at most one `*` stands for, the highest version first. */
async function expand(/** @type {string} */ pattern) {
  const [before, after] = pattern.split("*");
  if (before === undefined || after === undefined) return [pattern];
  const names = (await exists(before)) ? await readdir(before) : [];
  return names
    .toSorted((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((name) => before + name + after);
}

async function exists(/** @type {string} */ path) {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** @param {Missing} missing */
async function fetch(missing) {
  const { name, packages, fetch: from } = missing.server;
  if (from === undefined) return;
  const obstacle = await fetchObstacle();
  if (obstacle !== undefined) throw new Failure(explain([missing], obstacle));
  console.log(`Fetching ${name} (${packages.join(" ")} of Debian ${from.suite}, once; nothing is installed)`);
  try {
    await fetchPackages(from.folder, from.suite, packages);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(`${error.message}\n\n${explain([missing], "fetching it failed, see above")}`);
  }
}

/** @param {readonly Missing[]} missing */
async function install(missing) {
  const obstacle = await installObstacle();
  if (obstacle !== undefined) throw new Failure(explain(missing, obstacle));
  const packages = missing.flatMap(({ server }) => server.packages);
  console.log(`Installing ${packages.join(" ")} (once; no daemon is started)`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = ["-q", "-o", "DPkg::Lock::Timeout=300"];
  try {
    await withoutDaemons(async () => {
      await mustRun("apt-get", [...apt, "update"], { env });
      await mustRun("apt-get", [...apt, "install", "-y", "--no-install-recommends", ...packages], { env });
    });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(`${error.message}\n\n${explain(missing, "installing it failed, see above")}`);
  }
}

/** Why nothing can be fetched here, or undefined when it can. */
async function fetchObstacle() {
  if (process.env["HOLDFAST_TEST_INSTALL"] === "0") return "not installed, as HOLDFAST_TEST_INSTALL=0 asks";
  if (!(await exists("/etc/debian_version"))) return "not installed by itself, as this is not Debian";
  return undefined;
}

/** Why nothing can be installed here, or undefined when it can. */
async function installObstacle() {
  const obstacle = await fetchObstacle();
  if (obstacle !== undefined) return obstacle;
  return process.getuid?.() === 0 ? undefined : "not installed by itself, as this is not root";
}

/**
 * Runs work while Debian's own switch forbids packages to start their daemons. A switch that was there is left alone.
 *
 * @param {() => Promise<void>} work
 */
async function withoutDaemons(work) {
  const policy = "/usr/sbin/policy-rc.d";
  if (await exists(policy)) return work();
  await writeFile(policy, "#!/bin/sh\nexit 101\n");
  await chmod(policy, 0o755);
  try {
    await work();
  } finally {
    await rm(policy, { force: true });
  }
}

/**
 * @param {readonly Missing[]} missing
 * @param {string} why
 */
function explain(missing, why) {
  const lines = missing.flatMap(({ server, binaries }) => [
    `Missing server: ${server.name} (${binaries.join(", ")}), needed by the tests of ${server.backends.join(", ") || "the command"}; ${why}.`,
    server.fetch === undefined
      ? `  Debian or Ubuntu: apt-get install ${server.packages.join(" ")}`
      : `  Debian: unpack ${server.packages.join(" ")} of ${server.fetch.suite}, with all that it depends on, into ${server.fetch.folder}`,
    ...(server.url === undefined ? [] : [`  or give a running one: ${server.url}=…`]),
  ]);
  return lines.join("\n");
}
