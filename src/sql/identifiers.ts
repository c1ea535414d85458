/** Names of schemas, tables and columns as callers give them: checked, so that quoting them is always right. */
import { invalid } from "../core/errors.ts";

const plain = /^[a-z_][a-z0-9_]*$/i;

/** A name that may stand in SQL text once it is quoted: letters, digits and underscores, at most so many. */
export function checkIdentifier(name: string, what: string, longest: number = 63): string {
  if (plain.test(name) && name.length <= longest) return name;
  throw invalid(
    `${what} may have letters, digits and underscores, at most ${longest}: not ${JSON.stringify(name)}`,
  );
}
