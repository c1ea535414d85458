/**
 * Runs the rounds of a suite and sums them up. How one value is measured is left to the `measure` that it is given,
 * what the values mean to the suite.
 */
import { availableParallelism } from "node:os";
import { ratioPerRound, rotate, summarize } from "./statistics.mjs";

/** @import { Effort, Job, MetricSummary, Report, Round, Suite, Values } from "./types.ts" */

// The warm-up is what async-mutex needs to reach its full speed; with less of it the peers look slower than they are.
/** @type {Effort} */
export const fullEffort = { rounds: 5, budget: { warmUpMs: 500, measureMs: 700 }, quick: false };
/** @type {Effort} */
export const quickEffort = { rounds: 3, budget: { warmUpMs: 250, measureMs: 150 }, quick: true };

/**
 * Measures all contenders, one measurement after the other and within it the contenders in turn, so that those who
 * are compared run close to each other in time; another contender begins in each round.
 * @param {Suite} suite
 * @param {Effort} effort
 * @param {(job: Job) => Promise<Values>} measure
 * @param {(round: number, job: Job, values: Values) => void} [onMeasured]
 * @returns {Promise<Round[]>}
 */
export async function runRounds(suite, effort, measure, onMeasured) {
  const context = await suite.setup?.();
  try {
    const rounds = [];
    for (let round = 0; round < roundsOf(suite, effort); round++) {
      rounds.push(
        await runRound(suite, effort, round, async (contender, measurement) => {
          const job = { suite: suite.name, contender, measurement, budget: effort.budget, context };
          const values = await measure(job);
          onMeasured?.(round, job, values);
          return values;
        }),
      );
    }
    return rounds;
  } finally {
    await suite.teardown?.(context);
  }
}

/**
 * How many rounds a run of the suite has.
 * @param {Suite} suite
 * @param {Effort} effort
 */
export function roundsOf({ quickRounds }, { quick, rounds }) {
  return quick ? Math.min(rounds, quickRounds ?? rounds) : rounds;
}

/**
 * @param {Suite} suite
 * @param {Effort} effort
 * @param {number} turn
 * @param {(contender: string, measurement: string) => Promise<Values>} measure
 */
async function runRound(suite, effort, turn, measure) {
  /** @type {Round} */
  const round = {};
  for (const [measurement, { once }] of Object.entries(suite.measurements)) {
    if (once && turn > 0) continue;
    const entrants = suite.contenders.filter(
      ({ measurements, fullOnly, onceInQuick }) =>
        (measurements.includes(measurement) || (!effort.quick && fullOnly?.includes(measurement))) &&
        !(effort.quick && turn > 0 && onceInQuick?.includes(measurement)),
    );
    for (const { name } of rotate(entrants, turn)) {
      round[name] = { ...round[name], ...(await measure(name, measurement)) };
    }
  }
  return round;
}

/**
 * Medians and spreads over the rounds, and the ratios of the suite.
 * @param {Suite} suite
 * @param {Effort} effort
 * @param {readonly Round[]} rounds
 * @returns {Report}
 */
export function sumUp(suite, effort, rounds) {
  const ratios = Object.entries(suite.ratios)
    .filter(([, { fullOnly }]) => !(effort.quick && fullOnly))
    .map(([key, { alsoInFull = [], ...ratio }]) => {
      const to = effort.quick ? ratio.to : [...ratio.to, ...alsoInFull];
      return { key, ...summarize(ratioPerRound(rounds, { ...ratio, to }, suite.metrics)) };
    });
  return {
    suite: suite.name,
    rounds: rounds.length,
    quick: effort.quick,
    node: process.version,
    cpus: availableParallelism(),
    floor: suite.floor,
    contenders: Object.fromEntries(
      suite.contenders.map(({ name }) => [name, metricsOf(suite, rounds, name)]),
    ),
    ratios: Object.fromEntries(ratios.map(({ key, median }) => [key, median])),
    ratioSpread: Object.fromEntries(ratios.map(({ key, min, max }) => [key, [min, max]])),
  };
}

/**
 * @param {Suite} suite
 * @param {readonly Round[]} rounds
 * @param {string} contender
 */
function metricsOf(suite, rounds, contender) {
  /** @type {Record<string, MetricSummary>} */
  const summaries = {};
  for (const [metric, { unit }] of Object.entries(suite.metrics)) {
    const values = rounds.flatMap((round) => round[contender]?.[metric] ?? []);
    if (values.length === 0) continue;
    const toFloor = { of: { contender, metric }, to: [{ contender: suite.floor, metric }] };
    const shared = rounds.filter(
      (round) => metric in (round[contender] ?? {}) && metric in (round[suite.floor] ?? {}),
    );
    const vsFloor =
      shared.length === 0 ? null : summarize(ratioPerRound(shared, toFloor, suite.metrics)).median;
    summaries[metric] = { unit, ...summarize(values), vsFloor };
  }
  return summaries;
}
