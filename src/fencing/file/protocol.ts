/**
 * How processes that share a folder, but no lock, replace a file in the order of their tokens; what a folder does is left
 * to folder.ts.
 *
 * A rename cannot be made to depend on a token, and whoever looks before it may be paused in between. But it fails if
 * what is to be renamed is gone. So a newer holder deletes what older ones have prepared before it renames its own:
 *
 *  1. look: refuse what is stale before anything is made;
 *  2. stage the new content, under a name that starts with the token;
 *  3. announce the token, by a file that has it as its name;
 *  4. look again: what was announced before the staging is seen here;
 *  5. sweep: delete what that look has found staged under lower tokens; what was staged after it meets the announcement in
 *     its own step 4;
 *  6. move the file that has the token over `floor`, for a folder that stays small;
 *  7. move the new content to its place; false means that it was swept: the token is stale, and nothing was written;
 *  8. delete the announcements up to the token: `floor` says it from now on.
 *
 * Why no move of a token s comes after the sweep of a token t > s: if it did, its file was staged after t was announced,
 * since the sweep did not find it. So step 4 of s began after that, and missed the announcement only if somebody with a
 * token r >= t deleted it meanwhile, after moving `floor` to r. Floor moves in order, by this same argument for the moves
 * before; so step 4, which reads `floor` after the listing, found at least r, and s was refused. The listing need not be
 * a picture of one moment: it has to have what was there all the time, as POSIX demands. Whoever dies on the way leaves
 * files that the next token sweeps; whoever is paused finds its file gone. Nobody ever waits for anybody.
 */
import { randomBytes } from "node:crypto";
import { isStale } from "../guard.ts";
import { parseToken } from "../token.ts";

/** A folder for one guarded file, and the place of that file. */
export interface Folder {
  /** The names in it: all that were there for the whole time of the call. */
  list(): Promise<readonly string[]>;
  /** The content of a file; null if it is not there. */
  read(name: string): Promise<string | null>;
  /** Makes an empty file, if it is not there. */
  announce(name: string): Promise<void>;
  /** Makes a file that has its content on disk. */
  stage(name: string, content: string | Uint8Array): Promise<void>;
  /** Deletes a file, if it is there. */
  remove(name: string): Promise<void>;
  /** Moves a staged file over `floor`, for good; false if it is not there any more. */
  moveToFloor(name: string): Promise<boolean>;
  /** Moves a staged file to its place outside, for good; false if it is not there any more. */
  moveToPlace(name: string): Promise<boolean>;
}

/** The name of the file that has the highest token of those who have swept. */
export const floorName = "floor";

const announced = /^\d+$/;
const staged = /^(\d+)\.[0-9a-f]+\.(?:data|floor)$/;

/** What a look at the folder finds. */
export interface Look {
  /** The highest token that was announced or has swept; null if none. */
  readonly highest: bigint | null;
  readonly floor: bigint | null;
  readonly names: readonly string[];
}

/** The highest token of a folder. The listing comes first: see above. */
export async function look(folder: Folder): Promise<Look> {
  const names = await folder.list();
  const text = await folder.read(floorName);
  const floor = text === null ? null : parseToken(text.trimEnd());
  let highest = floor;
  for (const name of names) {
    if (announced.test(name) && !isStale(BigInt(name), highest)) highest = BigInt(name);
  }
  return { highest, floor, names };
}

/** Replaces the file, or only shows the token if there is no content. Gives null, or the highest token if that is newer. */
export async function replace(
  folder: Folder,
  token: bigint,
  content: string | Uint8Array | null,
): Promise<bigint | null> {
  const before = await look(folder);
  if (isStale(token, before.highest)) return before.highest;
  // A token that has swept needs not announce itself again.
  const known = before.floor === token;
  if (known && content === null) return null;
  const stem = `${token}.${randomBytes(8).toString("hex")}`;
  /** What is staged and not moved yet. */
  const own = new Set<string>();
  const stage = async (name: string, what: string | Uint8Array): Promise<string> => {
    own.add(name);
    await folder.stage(name, what);
    return name;
  };
  try {
    const data = content === null ? null : await stage(`${stem}.data`, content);
    const floor = known ? null : await stage(`${stem}.floor`, `${token}\n`);
    if (floor !== null) await folder.announce(String(token));
    const now = await look(folder);
    if (isStale(token, now.highest)) return now.highest;
    if (floor !== null) {
      for (const name of now.names) if (isStagedBelow(name, token)) await folder.remove(name);
      if (!(await folder.moveToFloor(floor))) return await newer(folder, token);
      own.delete(floor);
    }
    if (data !== null) {
      if (!(await folder.moveToPlace(data))) return await newer(folder, token);
      own.delete(data);
    }
    // What is left behind here the next token deletes.
    if (floor !== null) await forget(folder, token, now.names).catch(() => {});
    return null;
  } finally {
    for (const name of own) await folder.remove(name).catch(() => {});
  }
}

function isStagedBelow(name: string, token: bigint): boolean {
  const [, of] = staged.exec(name) ?? [];
  return of !== undefined && isStale(BigInt(of), token);
}

/** Deletes announcements that `floor` has made needless. */
async function forget(folder: Folder, token: bigint, names: readonly string[]): Promise<void> {
  for (const name of names) {
    if (announced.test(name) && !isStale(token, BigInt(name))) await folder.remove(name);
  }
}

/** Who has swept what was staged. */
async function newer(folder: Folder, token: bigint): Promise<bigint> {
  const { highest } = await look(folder);
  if (highest !== null && isStale(token, highest)) return highest;
  throw new Error(
    "what was staged is gone, and nobody with a newer token was there: somebody else deletes files here",
  );
}
