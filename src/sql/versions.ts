/** The versions of a schema, read from its .sql file; applying them is left to each backend, since databases differ in DDL. */

/** One step from a schema to the next. */
export interface Version {
  readonly number: number;
  readonly sql: string;
}

const heading = /^-- version (\d+)$/m;

/** Splits the text of a schema at its headings `-- version N`, which count up from 1. */
export function versionsOf(text: string): readonly Version[] {
  const [, ...parts] = text.split(heading);
  const versions: Version[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const number = Number(parts[at]);
    if (number !== versions.length + 1) throw new Error(`version ${number} of the schema is out of order`);
    versions.push({ number, sql: parts[at + 1] ?? "" });
  }
  return versions;
}
