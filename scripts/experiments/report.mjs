/** Results of experiments: kept as JSON, shown as a page with tables and plots. What they are about is left to plan.mjs. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root, run, tool } from "../lib/run.mjs";
import { drawBars } from "./plots.mjs";
import { experiments } from "./plan.mjs";
import { withBound } from "./bounds.mjs";

/**
 * @typedef {object} Context
 * @property {number} rounds
 * @property {number} seed
 * @property {(label: string) => boolean} wants whether a row is asked for
 */

/**
 * @typedef {object} Row what one variant of an experiment has shown
 * @property {string} label
 * @property {number} rounds
 * @property {number} ttlMs
 * @property {number} [doubleGrants]
 * @property {number} [tokensBack]
 * @property {number} [staleUnfenced]
 * @property {number} [staleFenced]
 * @property {number} [refused]
 * @property {number} [falseRejects]
 * @property {string} [sha256]
 * @property {Record<string, string | number>} extra
 */

/**
 * @typedef {object} Run when and how rows came about
 * @property {number} seconds
 * @property {string} on the day
 * @property {string} commit
 * @property {number} [seed]
 * @property {{ p99: number, most: number }} [lagMs] how late the event loop of the harness was: more on a machine that is busy
 * @property {Record<string, string>} versions
 */

/** @typedef {Row & { run: Run }} KeptRow */
/** @typedef {Record<string, readonly KeptRow[]>} Results by experiment */

const folder = join(root, "docs", "evidence");
const file = join(folder, "results.json");

/** @returns {Promise<Results>} */
export async function readResults() {
  return readFile(file, "utf8").then(JSON.parse, () => ({}));
}

/**
 * Keeps rows beside those of other experiments and other runs, in place of those with the same labels, and writes the page anew.
 *
 * @param {string} id
 * @param {readonly Row[]} rows
 * @param {Run} made
 */
export async function keepRows(id, rows, made) {
  await mkdir(folder, { recursive: true });
  const results = await readResults();
  const kept = new Map((results[id] ?? []).map((row) => [row.label, row]));
  for (const row of rows) kept.set(row.label, { ...row, run: made });
  results[id] = [...kept.values()];
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
  await writePage(results);
}

/** @param {Results} results */
export async function writePage(results) {
  const parts = [];
  for (const { id, title, question, expected } of experiments) {
    const rows = results[id];
    const head = `## ${id}: ${title}\n\n${question} ${expected}`;
    if (rows === undefined) {
      parts.push(`${head}\n\nNot run yet: \`npm run experiments -- --only ${id}\``);
      continue;
    }
    const plot = await plotOf(id, rows);
    parts.push(`${head}\n\n${plot}${tableOf(rows)}\n\n${footOf(rows)}`);
  }
  const page = join(root, "docs", "evidence.md");
  await writeFile(page, `${opening}\n\n${parts.join("\n\n")}\n`);
  await run(tool("oxfmt"), [page], { quiet: true });
}

const opening = `# Evidence

Each famous failure of distributed locks, made to happen with real servers, and counted. This page is written by

\`\`\`sh
npm run experiments                  # all, 200 rounds each
npm run experiments -- --full        # all, 1,000 rounds each
npm run experiments -- --only a1,b1  # some; with --rows TEXT only the rows whose label has that text
\`\`\`

Clients are processes of their own; the resources that they write to are, too, and their own record is the truth about writes. The fenced one
refuses a token below the highest that it has seen; the unfenced one takes everything. A **double grant** is an overlap of two validity
intervals, found by [the checker](verify.md); a library that does not say until when it believes counts as believing until it says otherwise. A **stale write** is one that is accepted after a later holder has written. A **false reject** is a
write that the fence refuses although its holder is inside its validity. Behind each count stands the 95 % upper bound of the rate:
"0 (< 1.5 %)" does not say never; in the plots a thin line leads up to it. Where a library has no tokens, the harness numbers its grants, so that stale writes can be counted, and the fenced
resource is left out. Raw histories are kept in \`.cache/experiments\`; their checksums are below. What a store cannot promise is shown
here, not hidden; what it can is in [the guarantees](guarantees.md).`;

/** @param {readonly Row[]} rows */
function tableOf(rows) {
  const counts = /** @type {const} */ ([
    ["double grants", "doubleGrants"],
    ["stale writes accepted without the fence", "staleUnfenced"],
    ["with the fence", "staleFenced"],
    ["refused by the fence", "refused"],
    ["false rejects", "falseRejects"],
    ["tokens that went back", "tokensBack"],
  ]);
  const shown = counts.filter(([, key]) => rows.some((row) => row[key] !== undefined));
  const extras = [...new Set(rows.flatMap(({ extra }) => Object.keys(extra)))];
  const head = ["", "rounds", "ttl", ...shown.map(([title]) => title), ...extras];
  const lines = rows.map((row) => [
    row.label,
    String(row.rounds),
    row.ttlMs === 0 ? "–" : `${row.ttlMs} ms`,
    ...shown.map(([, key]) => countOf(row, key)),
    ...extras.map((key) => String(row.extra[key] ?? "–")),
  ]);
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...lines.map(line)].join("\n");
}

/** @param {Row} row @param {keyof Row} key */
function countOf(row, key) {
  const count = row[key];
  if (typeof count !== "number") return "–";
  return key === "refused" ? String(count) : withBound(count, row.rounds);
}

/** One paragraph for each run that rows are from. @param {readonly KeptRow[]} rows */
function footOf(rows) {
  /** @type {Map<string, KeptRow[]>} */
  const runs = new Map();
  for (const row of rows) {
    const key = JSON.stringify(row.run);
    runs.set(key, [...(runs.get(key) ?? []), row]);
  }
  return [...runs.values()].map(runOf).join("\n\n");
}

/** @param {readonly KeptRow[]} rows of one run */
function runOf(rows) {
  const [first] = rows;
  if (first === undefined) return "";
  const { seconds, lagMs, on, commit, seed, versions } = first.run;
  // Results from before they were kept have neither, and are of an earlier form of the experiments.
  const chance = seed === undefined ? "" : `, seed ${seed}`;
  const early = seed === undefined ? ` ${earlier}` : "";
  const lag =
    lagMs === undefined ? "" : `; event loop late by ${lagMs.p99} ms (p99), ${lagMs.most} ms at most`;
  const made = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const sums = rows.flatMap(({ label, sha256 }) =>
    sha256 === undefined ? [] : [`${label} \`${sha256.slice(0, 16)}\``],
  );
  const histories = sums.length === 0 ? "" : ` Histories (SHA-256, first 16): ${sums.join(", ")}.`;
  return `_${on}, commit ${commit}${chance}, ${Math.round(seconds)} s${lag}. ${made.join(", ")}.${early}${histories}_`;
}

const earlier =
  "These rows are of an earlier form of the experiment: shorter pauses and thoughts, fewer rows, validity without renewals, set-ups that failed left out.";

/** @param {string} id @param {readonly Row[]} rows */
async function plotOf(id, rows) {
  const name = `${id}.svg`;
  await writeFile(join(folder, name), drawBars(rows));
  return `![${id}: share of rounds](evidence/${name})\n\n`;
}
