/** One call of the CLI, from its words to how it ends: finds the command, runs it, and says what went wrong. */
import { readFileSync } from "node:fs";
import { parseCommandLine, parseOptions, splitGlobal } from "./arguments.ts";
import { type Call, type Command, commonOptions, type Outcome } from "./command.ts";
import { unknownCommand } from "./commands/help.ts";
import { commands } from "./commands/index.ts";
import { exitCodes } from "./exit-codes.ts";
import { commandHelp, overview } from "./help.ts";
import { Failure, message } from "./messages.ts";
import { Output, type Sink } from "./output.ts";
import { storeUrl } from "./store.ts";
import { secretsOf } from "./store-url.ts";

/** What a call of the CLI finds around it. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly stdout: Sink;
  readonly stderr: Sink;
  /** Whether somebody sits at the terminal who can be asked. */
  readonly interactive: boolean;
}

/** Runs the CLI with the words of its command line. Never rejects: what goes wrong is said, and shows in the outcome. */
export async function runCli(words: readonly string[], around: Surroundings): Promise<Outcome> {
  let output = outputFor(around, words, undefined);
  try {
    const { leading, own } = splitGlobal(words);
    const [name, ...others] = own;
    if (name === undefined) return await withoutCommand(leading, output);
    const command = find(name);
    const parsed = parseCommandLine(command, [...leading, ...others]);
    output = outputFor(around, words, parsed.given.value("store"), parsed.given.flag("quiet"));
    if (parsed.given.flag("help")) {
      output.line(commandHelp(command));
      return exitCodes.ok;
    }
    const call: Call = { command, ...parsed, output, env: around.env, interactive: around.interactive };
    return await command.run(call);
  } catch (error) {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const shown = error instanceof Failure ? error.shown : message("bug", { reason });
    output.show(shown);
    return shown.exitCode ?? exitCodes.bug;
  }
}

/** Before the words are taken apart, whether to speak JSON is looked up among them; what follows `--` is not ours. */
function outputFor(
  { env, stdout, stderr }: Surroundings,
  words: readonly string[],
  store: string | undefined,
  quiet = false,
): Output {
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const clean = secretsOf(storeUrl(store ?? storeAmong(own), env));
  return new Output({ stdout, stderr, env, json: own.includes("--json"), quiet, clean });
}

function storeAmong(words: readonly string[]): string | undefined {
  const index = words.indexOf("--store");
  if (index >= 0) return words[index + 1];
  return words.find((word) => word.startsWith("--store="))?.slice("--store=".length);
}

function find(name: string): Command {
  const found = commands.find((command) => command.name === name);
  if (found !== undefined) return found;
  throw unknownCommand(name, commands);
}

async function withoutCommand(leading: readonly string[], output: Output): Promise<Outcome> {
  const version = { short: "V", help: "the version of holdfast" };
  const { given } = parseOptions(leading, { ...commonOptions, version }, "help");
  if (given.flag("version")) {
    const text = versionOfPackage();
    if (output.json) output.record({ version: text });
    else output.line(text);
    return exitCodes.ok;
  }
  if (!given.flag("help")) throw new Failure("command-not-given");
  output.line(overview(commands));
  return exitCodes.ok;
}

function versionOfPackage(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  if (typeof manifest === "object" && manifest !== null && "version" in manifest)
    return String(manifest.version);
  throw new Error("package.json has no version");
}
