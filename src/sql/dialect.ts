/** What the tools for users' own transactions need to know of a database: how it quotes, runs and refuses. */
import { invalid } from "../core/errors.ts";
import { checkIdentifier } from "./identifiers.ts";

/** What a statement gave. */
export interface Result {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** How many rows it found or changed. */
  readonly count: number;
  /** Whether a transaction is open after it, where the driver says so. */
  readonly begun?: boolean | undefined;
}

/** A database, as seen from inside a user's transaction. */
export interface Dialect<Transaction> {
  readonly backend: string;
  /** A checked name, ready to stand in SQL text. */
  quote(name: string): string;
  /** The text that stands for the nth value, counted from 1. */
  mark(n: number): string;
  /** The text that stands for the nth value as a whole number of 64 bits: as plain text it may be compared as a fraction. */
  wholeMark(n: number): string;
  /** A whole number of 64 bits as text, since drivers may round it. */
  asText(column: string): string;
  run(tx: Transaction, sql: string, values: readonly unknown[]): Promise<Result>;
  /** Whether an error says that a lock is busy. */
  isBusy(error: unknown): boolean;
}

/** A row of a user's table: the columns that name it, and what they are. */
export type Key = Readonly<Record<string, unknown>>;

/** A table's name, maybe with its schema, ready to stand in SQL text. */
export function tableOf<T>(dialect: Dialect<T>, table: string): string {
  return table
    .split(".")
    .map((part) => dialect.quote(checkIdentifier(part, "the name of a table")))
    .join(".");
}

/** Columns that are set or compared: "a" = $1, …, and the values that belong to them. */
export function assignments<T>(
  dialect: Dialect<T>,
  columns: Key,
  from: number,
): { readonly texts: readonly string[]; readonly values: readonly unknown[] } {
  const entries = Object.entries(columns);
  if (entries.length === 0) throw invalid("give at least one column");
  const texts = entries.map(([column], index) => {
    return `${dialect.quote(checkIdentifier(column, "the name of a column"))} = ${dialect.mark(from + index)}`;
  });
  return { texts, values: entries.map(([, value]) => value) };
}
