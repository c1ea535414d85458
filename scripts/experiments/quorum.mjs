/** Experiments c and d: Redlock on five Redis servers whose clocks jump, or which come back without what they had. */
import { durableRedis } from "../../dist/verify/clusters/redis.js";
import { withBound } from "./bounds.mjs";
import { Five } from "./five.mjs";
import { inLanes, sleep, Stage } from "./stage.mjs";

/** @typedef {import("./report.mjs").Context} Context */
/** @typedef {import("./report.mjs").Row} Row */

/**
 * @typedef {object} Cell
 * @property {string} library
 * @property {number} h how many servers C1 holds
 * @property {number} j to how many of these something happens
 * @property {string} label
 * @property {string} file
 * @property {(five: Five, j: number) => Promise<void>} strike what happens
 * @property {number} lanes
 * @property {number} [ttlMs]
 * @property {readonly string[]} [args] of the servers
 * @property {number} [quarantineMs]
 * @property {(five: Five, j: number) => Promise<void>} [mend] what happens while C2 asks; with it, C2 asks for as long as it takes
 */

/** Longer than a round takes: what ends a hold is what happened to the servers. */
const longTtlMs = 8_000;
/** A set-up that fails is begun anew, but not for ever. */
const mostSetUps = 50;

/** The rows of those cells that are asked for. @param {Context} context @param {readonly Cell[]} cells */
async function rowsOf(context, cells) {
  /** @type {Row[]} */
  const rows = [];
  for (const cell of cells) if (context.wants(cell.label)) rows.push(await cellRow(context, cell));
  return rows;
}

/**
 * C1 holds h of five; then something happens to j of these; then C2 asks.
 *
 * @param {Context} context
 * @param {Cell} cell
 * @returns {Promise<Row>}
 */
async function cellRow({ rounds }, cell) {
  const { library, h, j, label, file, strike, mend, lanes, ttlMs = longTtlMs } = cell;
  const { args = [], quarantineMs = 0 } = cell;
  const stage = await Stage.open();
  let [anew, granted] = [0, 0];
  /** How long another lock, which is free, could not be had. @type {number[]} */
  const outages = [];
  await inLanes({
    rounds,
    lanes,
    open: () => Five.start(stage, { library, ttlMs, args, quarantineMs }),
    round: async (five, round) => {
      const { first, tries } = await setUp(stage, five, `${file}-${round}`, h);
      anew += tries - 1;
      const { name } = first;
      const at = await stage.read(first);
      await strike(five, j);
      const waitMs = mend === undefined ? 1_000 : 3 * ttlMs;
      const struckAt = performance.now();
      const tryOther = async () => {
        const other = await stage.takeWithin(five.c2, "c2", `${name}-other`, { waitMs, number: 1n });
        if (other !== null) outages.push(performance.now() - struckAt);
        return other;
      };
      const [second, other] = await Promise.all([
        stage.takeWithin(five.c2, "c2", name, { waitMs, number: 2n }),
        mend === undefined ? null : tryOther(),
        mend?.(five, j),
      ]);
      if (second !== null) {
        granted += 1;
        await stage.readAndWrite(second, "second");
        await stage.write(first, "first", at, { ifHeld: true });
      }
      for (const hold of [first, second, other]) if (hold !== null) await stage.leave(hold);
      await five.reset();
    },
    close: (five) => five.stop(),
  });
  const { counts } = await stage.close(`${file}-${library}-h${h}-j${j}`);
  const extra = { h, j, "C2 granted": withBound(granted, rounds), "set-ups begun anew": anew };
  if (mend === undefined) return { ...counts, label, rounds, ttlMs, extra };
  const outage = outages.length < rounds ? `never in ${rounds - outages.length} rounds` : spread(outages);
  return { ...counts, label, rounds, ttlMs, extra: { ...extra, "until a free lock was granted": outage } };
}

/**
 * Lets C1 take a lock on the first h servers, and on no other: tried until it is so, since a client may not have connected
 * to all of them yet.
 *
 * @param {Stage} stage
 * @param {Five} five
 * @param {string} file
 * @param {number} h
 */
async function setUp(stage, five, file, h) {
  for (let tries = 1; tries <= mostSetUps; tries += 1) {
    // No name is part of another: servers are asked for what ends with it.
    const name = `${file}-try-${tries}`;
    five.reach(h);
    const first = await stage.take(five.c1, "c1", name, { waitMs: 0, number: 1n });
    if (first !== null && (await five.areHeld(name, h))) return { first, tries };
    if (first !== null) await stage.leave(first);
    await five.reset();
  }
  throw new Error(`${file}: C1 did not get ${h} of the servers`);
}

/** @param {readonly number[]} values */
function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const part = (/** @type {number} */ share) => sorted[Math.floor(share * (sorted.length - 1))]?.toFixed(0);
  return `${part(0.5)} / ${part(1)} ms`;
}

const libraries = ["holdfast", "redlock@5"];

/** @type {readonly (readonly [number, number])[]} */
const clockCells = [
  [5, 1],
  [5, 2],
  [5, 3],
  [4, 1],
  [4, 2],
  [3, 1],
];

/** c: the clocks of j servers jump by a minute. @param {Context} context */
export async function c(context) {
  const strike = (/** @type {Five} */ five, /** @type {number} */ j) => five.jump(j);
  const cells = libraries.flatMap((library) =>
    clockCells.map(([h, j]) => {
      const label = `${library}, holds ${h}, ${j} jump`;
      return { library, h, j, label, file: "c", strike, lanes: 3 };
    }),
  );
  return rowsOf(context, cells);
}

/** The cells in which two hold if servers come back at once, and one in which they do not. @type {readonly (readonly [number, number])[]} */
const restartCells = [
  [3, 1],
  [5, 2],
  [5, 3],
];

/** Those in which they do. @type {readonly (readonly [number, number])[]} */
const doubleCells = [
  [3, 1],
  [5, 3],
];

/** The ttl of those who wait until it has passed, and how much longer servers stay away. */
const shortTtlMs = 1_000;
const awayMs = shortTtlMs + 300;

/** @type {(five: Five, j: number) => Promise<void>} */
const killAndRestart = async (five, j) => {
  await five.kill(j);
  await five.restart(j);
};

/** d: j servers are killed and come back at once, with or without what they had, or later. @param {Context} context */
export async function d(context) {
  /** @type {Cell[]} */
  const cells = [];
  for (const library of libraries) {
    const common = { library, file: "d", strike: killAndRestart, lanes: 4 };
    for (const [h, j] of restartCells)
      cells.push({ ...common, h, j, label: `${library}, holds ${h}, ${j} restart` });
    const durable = { h: 3, j: 1, args: durableRedis, file: "d-durable" };
    cells.push({ ...common, ...durable, label: `${library}, holds 3, 1 restart, appendfsync always` });
    for (const [h, j] of doubleCells)
      cells.push({
        ...common,
        ...delayed,
        h,
        j,
        label: `${library}, holds ${h}, ${j} restart after the ttl`,
      });
  }
  for (const [h, j] of doubleCells)
    cells.push({ ...quarantined, h, j, label: `holdfast with its quarantine, holds ${h}, ${j} restart` });
  return rowsOf(context, cells);
}

/** Somebody keeps dead servers away for longer than a ttl. */
const delayed = {
  file: "d-delayed",
  lanes: 10,
  ttlMs: shortTtlMs,
  strike: (/** @type {Five} */ five, /** @type {number} */ j) => five.kill(j),
  mend: async (/** @type {Five} */ five, /** @type {number} */ j) => {
    await sleep(awayMs);
    await five.restart(j);
  },
};

/** They come back at once, and our clients do not count them before a ttl has passed. */
const quarantined = {
  library: "holdfast",
  file: "d-quarantine",
  lanes: 10,
  ttlMs: shortTtlMs,
  quarantineMs: shortTtlMs,
  strike: killAndRestart,
  mend: async () => {},
};
