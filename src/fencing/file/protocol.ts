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
 *  5. sweep: delete what was staged under lower tokens; what is staged from now on meets the announcement in its step 4;
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
  const own = { data: content === null ? null : `${stem}.data`, floor: known ? null : `${stem}.floor` };
  try {
    if (own.data !== null && content !== null) await folder.stage(own.data, content);
    if (own.floor !== null) {
      await folder.stage(own.floor, `${token}\n`);
      await folder.announce(String(token));
    }
    const now = await look(folder);
    if (isStale(token, now.highest)) return now.highest;
    if (own.floor !== null) {
      await sweep(folder, token);
      if (!(await folder.moveToFloor(own.floor))) return await newer(folder, token);
    }
    if (own.data !== null && !(await folder.moveToPlace(own.data))) return await newer(folder, token);
    // What is left behind here the next token deletes.
    if (own.floor !== null) await forget(folder, token).catch(() => {});
    return null;
  } finally {
    for (const name of Object.values(own)) if (name !== null) await folder.remove(name).catch(() => {});
  }
}

/** Deletes what was staged under lower tokens. */
async function sweep(folder: Folder, token: bigint): Promise<void> {
  for (const name of await folder.list()) {
    const [, of] = staged.exec(name) ?? [];
    if (of !== undefined && isStale(BigInt(of), token)) await folder.remove(name);
  }
}

/** Deletes announcements that `floor` has made needless. */
async function forget(folder: Folder, token: bigint): Promise<void> {
  for (const name of await folder.list()) {
    if (announced.test(name) && BigInt(name) <= token) await folder.remove(name);
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
