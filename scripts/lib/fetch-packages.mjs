/** Brings Debian packages of another suite, with all that they need, into a folder of their own: nothing is installed, nobody has to be root. */
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { mustRun } from "./run.mjs";

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/**
 * Downloads packages and their dependencies, checked by apt against Debian's keys, and unpacks them. Either all of it is in the folder
 * afterwards or none.
 *
 * @param {string} folder
 * @param {string} suite
 * @param {readonly string[]} packages
 */
export async function fetchPackages(folder, suite, packages) {
  const work = `${folder}.${process.pid}`;
  const tree = join(work, "tree");
  await rm(work, { recursive: true, force: true });
  for (const part of ["tree", "state/lists/partial", "cache/archives/partial"])
    await mkdir(join(work, part), { recursive: true });
  try {
    const apt = await aptIn(work, suite);
    await mustRun("apt-get", [...apt, "update"]);
    const wish = ["-y", "--no-install-recommends", "--download-only", "install", ...packages];
    await mustRun("apt-get", [...apt, ...wish]);
    const archives = join(work, "cache", "archives");
    const debs = (await readdir(archives)).filter((name) => name.endsWith(".deb"));
    for (const deb of debs) await mustRun("dpkg-deb", ["-x", join(archives, deb), tree]);
    await rm(folder, { recursive: true, force: true });
    await rename(tree, folder);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * The options of an apt that knows one suite and thinks that nothing is installed.
 *
 * @param {string} work
 * @param {string} suite
 */
async function aptIn(work, suite) {
  const sources = join(work, "sources.list");
  const status = join(work, "status");
  await writeFile(sources, `deb [signed-by=${keyring}] ${await mirror()} ${suite} main\n`);
  await writeFile(status, "");
  const settings = {
    "Dir::Etc::SourceList": sources,
    "Dir::Etc::SourceParts": "-",
    "Dir::State": join(work, "state"),
    "Dir::State::status": status,
    "Dir::Cache": join(work, "cache"),
    "Acquire::Languages": "none",
    "APT::Sandbox::User": "root",
  };
  return ["-q", ...Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`])];
}

/** Where this machine gets its packages from. */
async function mirror() {
  const wish = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
  const found = (await mustRun("apt-get", wish)).split("\n").find((uri) => /\/debian\/?$/.test(uri));
  return found ?? "http://deb.debian.org/debian";
}
