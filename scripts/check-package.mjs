/** npm run check:package: packs the package, installs the tarball elsewhere, and looks at it as a user would. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, sep } from "node:path";
import { provideNodes } from "./lib/node-versions.mjs";
import { Failure, main, mustRun, readManifest, root, tool } from "./lib/run.mjs";

const nodeMajors = [20, 22, 24, 26];

/** What may be in the tarball; anything else is a mistake until it is added here. */
const allowed = [
  /^package\.json$/,
  /^(README|CHANGELOG)\.md$/,
  /^LICENSE$/,
  /^dist\/[\w/-]+\.(js|d\.ts|sql)$/,
  /^docs\/[\w/.-]+\.md$/,
  /^docs\/evidence\/\w+\.(?:svg|json)$/,
];

await main(async () => {
  const project = await mkdtemp(join(tmpdir(), "holdfast-package-"));
  try {
    await check(project);
  } finally {
    await rm(project, { recursive: true, force: true });
  }
});

async function check(/** @type {string} */ project) {
  const { name, entries } = await readManifest();
  const tarball = await pack(project);
  const installed = join(project, "node_modules", name);

  await step("holds what it should", () => checkContent(installed));
  await step("publint", () => mustRun(tool("publint"), ["run", tarball, "--strict"]));
  await step("are the types wrong", () =>
    mustRun(tool("attw"), [tarball, "--profile", "esm-only", "--no-color", "--no-emoji"]),
  );
  await prepareConsumer(project);
  await step("types under NodeNext", () => compile(project, { module: "nodenext", outDir: "out" }));
  await step("types under bundler resolution", () =>
    compile(project, { module: "esnext", moduleResolution: "bundler", noEmit: true }),
  );
  await writeFile(join(project, "imports.mjs"), importsOf(entries.map(({ specifier }) => specifier)));
  for (const { major, node } of await provideNodes(nodeMajors)) {
    await step(`imports and runs on Node ${major}`, async () => {
      await mustRun(node, ["imports.mjs"], { cwd: project });
      await mustRun(node, [join("out", "consumer.js")], { cwd: project });
    });
    await step(`the command runs on Node ${major}`, () => checkCommand(project, node, major));
  }
}

/**
 * @param {string} title
 * @param {() => Promise<unknown>} work
 */
async function step(title, work) {
  try {
    await work();
    console.log(`ok      ${title}`);
  } catch (error) {
    console.log(`not ok  ${title}`);
    throw error;
  }
}

/** Builds, packs and installs into the project, as npm would from the registry; gives the path of the tarball. */
async function pack(/** @type {string} */ project) {
  await mustRun(process.execPath, [join(root, "scripts", "build.mjs")]);
  await mustRun("npm", ["pack", "--pack-destination", project]);
  const tarball = (await readdir(project)).find((file) => file.endsWith(".tgz"));
  if (tarball === undefined) throw new Failure("npm pack made no tarball");
  await writeFile(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
  await mustRun("npm", ["install", "--no-package-lock", join(project, tarball)], { cwd: project });
  return join(project, tarball);
}

async function checkContent(/** @type {string} */ installed) {
  const packed = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const entries = await readdir(installed, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(installed.length + 1)
        .split(sep)
        .join("/"),
    );

  const wrong = [
    ...files
      .filter((file) => !allowed.some((pattern) => pattern.test(file)))
      .map((file) => `unexpected file ${file}`),
    ...["README.md", "LICENSE", "CHANGELOG.md"]
      .filter((file) => !files.includes(file))
      .map((file) => `no ${file}`),
    ...["dependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"]
      .filter((field) => Object.keys(packed[field] ?? {}).length > 0)
      .map((field) => `${field} in package.json: there are none at run time`),
    ...["preinstall", "install", "postinstall", "prepare"]
      .filter((script) => packed.scripts?.[script] !== undefined)
      .map((script) => `install script ${script}`),
  ];
  if (wrong.length > 0) throw new Failure(`The tarball is wrong:\n  ${wrong.join("\n  ")}`);
}

/** Puts the consumer beside the installed package, with the types of Node, which it would have of its own. */
async function prepareConsumer(/** @type {string} */ project) {
  await cp(join(root, "test", "package", "consumer.ts"), join(project, "consumer.ts"));
  await mkdir(join(project, "node_modules", "@types"), { recursive: true });
  for (const name of ["@types/node", "undici-types"]) {
    await symlink(join(root, "node_modules", name), join(project, "node_modules", name), "junction");
  }
}

/**
 * Runs the command as npm has installed it, by its first line; with a lock where this Node has a SQLite of its own.
 *
 * @param {string} project
 * @param {string} node
 * @param {number} major
 */
async function checkCommand(project, node, major) {
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const holdfast = join(project, "node_modules", ".bin", "holdfast");
  const store = `sqlite:${join(project, `locks-${major}.db`)}`;
  const path = `${dirname(node)}${delimiter}${process.env["PATH"]}`;
  const options = { cwd: project, env: { ...process.env, PATH: path, HOLDFAST_STORE: store } };
  const expected = [
    { args: ["--version"], output: new RegExp(`^${version}\\n$`) },
    { args: ["--help"], output: /^holdfast <command>/ },
  ];
  if (major >= 22) {
    const print = "console.log(process.version, process.env.HOLDFAST_TOKEN)";
    expected.push({
      args: ["run", "x", "--", "node", "-e", print],
      output: new RegExp(`^v${major}\\.\\S+ \\d+\\n$`),
    });
  }
  for (const { args, output } of expected) {
    const printed = await mustRun(holdfast, args, options);
    if (!output.test(printed)) throw new Failure(`holdfast ${args.join(" ")} printed:\n${printed}`);
  }
}

/**
 * @param {string} project
 * @param {Record<string, unknown>} resolution
 */
async function compile(project, resolution) {
  const config = {
    // skipLibCheck stays off: the declarations of the package are what is being checked.
    compilerOptions: {
      target: "es2022",
      lib: ["es2022", "esnext.disposable"],
      types: ["node"],
      strict: true,
      rootDir: ".",
      ...resolution,
    },
    files: ["consumer.ts"],
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify(config));
  await mustRun(tool("tsc"), ["-p", "."], { cwd: project });
}

/** A module that imports all of these and insists that each gives something. */
function importsOf(/** @type {readonly string[]} */ specifiers) {
  return `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
for (const specifier of ${JSON.stringify(specifiers)}) {
  const found = specifier.endsWith(".json") ? require(specifier) : await import(specifier);
  if (Object.keys(found).length === 0) throw new Error(specifier + " exports nothing");
}
`;
}
