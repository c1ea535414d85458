/** The shapes that the bench files agree on, for the type checker alone: nothing of this runs. */

/** How long one measurement warms up and measures. */
export interface Budget {
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** What a measurement found, by metric key. */
export type Values = Record<string, number>;

/** The values of one round, by contender name. */
export type Round = Record<string, Values>;

/** How a metric is read. `better` also says which of several peers is the best one. */
export interface Metric {
  readonly unit: string;
  readonly better: "higher" | "lower";
}

/** Something that is measured in one child process, and may give several metrics. */
export interface Measurement<Subject> {
  /** The job is for fleet.mjs, which opens the contender in further processes. */
  run(subject: Subject, budget: Budget, job: Job): Promise<Values>;
  /**
   * For what hardly varies, such as bytes: measured in the first round alone.
   * @default false
   */
  readonly once?: boolean;
  /** Extra flags for the child's node. */
  readonly nodeFlags?: readonly string[];
  /**
   * After this the child is killed and the bench fails.
   * @default 60000
   */
  readonly deadlineMs?: number;
}

/** One of those that are compared. `open` runs in the child, so that a contender loads nothing of another. */
export interface Contender<Subject, Context> {
  readonly name: string;
  /** Keys of the suite's measurements. */
  readonly measurements: readonly string[];
  /** Further measurements, too slow for --quick. */
  readonly fullOnly?: readonly string[];
  /** Those of its measurements that --quick takes in the first round alone. */
  readonly onceInQuick?: readonly string[];
  open(context: Context): Promise<Subject>;
  /** Ends what `open` began. Left out where the end of the process does. */
  close?(subject: Subject): Promise<void>;
}

/** One value of a round. */
export interface Point {
  readonly contender: string;
  readonly metric: string;
}

/** `of` divided by the best of `to`, both from the same round, over all rounds that have them; `of` itself where `to` is empty. */
export interface Ratio {
  /** Whether it needs measurements that --quick leaves out. */
  readonly fullOnly?: boolean;
  readonly of: Point;
  readonly to: readonly Point[];
  /** More of these in a full run. */
  readonly alsoInFull?: readonly Point[];
}

/** A file of bench/suites. */
export interface Suite<Subject = unknown, Context = unknown> {
  readonly name: string;
  /** The contender that the table compares each other one with. */
  readonly floor: string;
  readonly metrics: Readonly<Record<string, Metric>>;
  readonly measurements: Readonly<Record<string, Measurement<Subject>>>;
  readonly contenders: readonly Contender<Subject, Context>[];
  readonly ratios: Readonly<Record<string, Ratio>>;
  /**
   * How many rounds --quick takes, where that many would take too long.
   * @default 3
   */
  readonly quickRounds?: number;
  /** Starts servers, once for all rounds. What it gives must survive JSON: each child gets it in `open`. */
  setup?(): Promise<Context>;
  teardown?(context: Context): Promise<void>;
}

/** The order for one child process. */
export interface Job {
  readonly suite: string;
  readonly contender: string;
  readonly measurement: string;
  readonly budget: Budget;
  readonly context: unknown;
}

/** How much a run may cost. */
export interface Effort {
  readonly rounds: number;
  readonly budget: Budget;
  /** Whether measurements that are too slow for --quick are left out. */
  readonly quick: boolean;
}

/** Median and spread over the rounds. */
export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** One metric of one contender over all rounds. */
export interface MetricSummary extends Summary {
  readonly unit: string;
  /** Median of the ratios to the floor within each round; null where the floor lacks the metric. */
  readonly vsFloor: number | null;
}

/** What `--json` prints. */
export interface Report {
  readonly suite: string;
  readonly rounds: number;
  readonly quick: boolean;
  readonly node: string;
  readonly cpus: number;
  readonly floor: string;
  readonly contenders: Readonly<Record<string, Readonly<Record<string, MetricSummary>>>>;
  /** Medians of the ratios within each round. */
  readonly ratios: Readonly<Record<string, number>>;
  readonly ratioSpread: Readonly<Record<string, readonly [min: number, max: number]>>;
}
