/** One call of `holdfast verify`, from its options to its end: loaded only when it is asked for, since all servers hang on it. */
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/errors.ts";
import { makeFolders } from "../../core/folders.ts";
import { type Cluster, clusters } from "../../verify/clusters/index.ts";
import { type ClusterName, clusterNames } from "../../verify/clusters/names.ts";
import { formatHistory } from "../../verify/history-text.ts";
import { clientFaults, serverFaults } from "../../verify/live/plan.ts";
import type { Verified } from "../../verify/live/verified.ts";
import { verifyStore } from "../../verify/live/verify.ts";
import { renderReport } from "../../verify/report.ts";
import { endAll, keepSignals } from "../../verify/servers/server-process.ts";
import type { Call, Outcome } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../messages.ts";
import { explained, opening, reasonOf, storeOf, storeUrl } from "../store.ts";
import { showStore } from "../store-url.ts";
import { progressText } from "./progress.ts";
import { tellVerified } from "./tell.ts";

/** How many violations the report shows; the table counts all. */
const shownViolations = 50;

/** What was asked for, checked. */
interface Asked {
  readonly cluster: ClusterName | undefined;
  readonly forMs: number;
  readonly ttlMs: number;
  readonly clients: number;
  readonly seed: number;
  /** undefined: all that can be had. */
  readonly faults: readonly string[] | undefined;
  readonly out: string;
}

function askedOf({ given }: Call): Asked {
  const faults = given.value("faults");
  const cluster = given.value("cluster");
  if (cluster !== undefined && given.value("store") !== undefined) {
    throw new Failure("options-exclude", { one: "--cluster", other: "--store" });
  }
  const found = clusterNames.find((name) => name === cluster);
  if (cluster !== undefined && found === undefined) {
    throw invalid(`there is no cluster ${JSON.stringify(cluster)}; there is ${clusterNames.join(", ")}`);
  }
  return {
    cluster: found,
    forMs: durationMs(given.value("for") ?? "60s", { option: "--for", leastMs: 1_000 }),
    ttlMs: durationMs(given.value("ttl") ?? "2s", { option: "--ttl", leastMs: 200 }),
    clients: whole(given.value("clients") ?? "5", "--clients", 1, 100),
    seed: whole(given.value("seed") ?? String(Math.floor(Math.random() * 1e9)), "--seed", 0, 2 ** 53 - 1),
    faults: faults === undefined ? undefined : faults === "none" ? [] : faults.split(","),
    out: given.value("out") ?? "holdfast-verify",
  };
}

function whole(text: string, option: string, least: number, most: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw invalid(`${option} is a whole number from ${least} to ${most}`);
}

/** Runs it. Rejects with the signal's reason if that ends it: then all is healed and taken away. */
export async function runVerify(call: Call, signal: AbortSignal): Promise<Outcome> {
  const asked = await explained(call, async () => askedOf(call));
  const made = await explained(call, async () => makeOut(asked.out));
  try {
    return await runAsked(call, asked, signal);
  } catch (error) {
    // What was made for nothing.
    if (made !== undefined && !existsSync(join(asked.out, "report.html")))
      await rm(made, { recursive: true });
    throw error;
  }
}

/** Makes the folder for the report before anything else: a run whose report cannot be written is in vain. Gives what is new. */
function makeOut(out: string): string | undefined {
  try {
    return makeFolders(out);
  } catch (error) {
    throw invalid(`--out ${JSON.stringify(out)} cannot be made: ${String(error)}`);
  }
}

async function runAsked(call: Call, asked: Asked, signal: AbortSignal): Promise<Outcome> {
  if (asked.cluster === undefined) {
    const url = storeUrl(call.given.value("store"), call.env) ?? "sqlite:";
    return await explained(call, () => verifyUrl(call, asked, url, null, signal));
  }
  const cluster = await startCluster(asked.cluster);
  try {
    signal.throwIfAborted();
    return await explained(call, () => verifyUrl(call, asked, cluster.url, cluster, signal));
  } finally {
    await cluster.stop();
  }
}

async function startCluster(name: ClusterName): Promise<Cluster> {
  keepSignals();
  try {
    return await clusters[name]();
  } catch (error) {
    endAll();
    const reason = error instanceof Error ? reasonOf(error) : String(error);
    throw new Failure("cluster-unavailable", { cluster: name, reason });
  }
}

async function verifyUrl(
  call: Call,
  asked: Asked,
  url: string,
  cluster: Cluster | null,
  signal: AbortSignal,
): Promise<Outcome> {
  const { output } = call;
  const servers = cluster?.faults ?? [];
  const faults = asked.faults ?? [...clientFaults, ...(cluster?.usual ?? [])];
  const impossible = cluster?.impossible ?? new Map<string, string>();
  const known: readonly string[] = [
    ...clientFaults,
    ...servers.map(({ kind }) => kind),
    ...impossible.keys(),
  ];
  const unknown = faults.find((fault) => !known.includes(fault));
  if (unknown !== undefined) throw noSuchFault(unknown, known, cluster);
  const { forMs, ttlMs, clients, seed } = asked;
  const verified = await opening(() =>
    verifyStore({
      url,
      forMs,
      ttlMs,
      clients,
      seed,
      faults,
      servers,
      impossible,
      ownStore: cluster !== null,
      signal,
      onProgress: (progress) => output.progress(progressText(progress)),
    }),
  );
  output.progress(null);
  const store = cluster === null ? storeOf(call) : `${showStore(url)} (${cluster.version})`;
  const files = await writeFiles(asked, store, verified);
  tellVerified(output, { ...asked, store, files, verified });
  return outcomeOf(store, verified, asked);
}

function noSuchFault(fault: string, known: readonly string[], cluster: Cluster | null): Error {
  const named = JSON.stringify(fault);
  if (cluster === null && serverFaults.some((each) => each === fault)) {
    return invalid(`${named} is a fault of servers, and a store of yours is not broken: give --cluster`);
  }
  return invalid(`there is no fault ${named} here; there is ${known.join(", ")}`);
}

async function writeFiles(asked: Asked, store: string, verified: Verified): Promise<readonly string[]> {
  const { events, judgement } = verified;
  const { result } = judgement;
  const shown = { ...result, violations: result.violations.slice(0, shownViolations) };
  const [report, history] = [join(asked.out, "report.html"), join(asked.out, "history.jsonl")];
  await writeFile(
    report,
    renderReport(events, shown, { title: `holdfast verify: ${store}, seed ${asked.seed}` }),
  );
  await writeFile(history, formatHistory(events));
  return [report, history];
}

function outcomeOf(store: string, { judgement }: Verified, { seed, out }: Asked): Outcome {
  const { rows, result } = judgement;
  if (result.verdict === "valid") return exitCodes.ok;
  if (result.verdict === "unknown") {
    throw new Failure("verify-unknown", { store, reason: result.doubts.join(" ") });
  }
  const broken = rows.filter(({ found, waived }) => found > 0 && waived === null);
  const what = broken.map(({ invariant }) => invariant).join(", ");
  throw new Failure("verify-invalid", { store, what, report: join(out, "report.html"), seed: String(seed) });
}
