/** The folder beside a guarded file, on a real file system: the steps of protocol.ts, each of them atomic and on disk. */
import {
  type FileHandle,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { makeFolders } from "../../core/folders.ts";
import { floorName, type Folder } from "./protocol.ts";

/** A folder of files. */
export class DiskFolder implements Folder {
  readonly #place: string;
  readonly #path: string;
  readonly #durable: boolean;
  /** Whether the new content is in its place: from then on a failure does not undo it. */
  placed = false;

  private constructor(place: string, durable: boolean) {
    this.#place = place;
    this.#path = join(dirname(place), `.${basename(place)}.fence`);
    this.#durable = durable;
  }

  /** The folder of the file at a path; a link leads to the folder of what it names, be that there or not. */
  static async of(path: string, durable: boolean): Promise<DiskFolder> {
    return new DiskFolder(await placeOf(path), durable);
  }

  async list(): Promise<readonly string[]> {
    return (await unlessMissing(readdir(this.#path))) ?? [];
  }

  read(name: string): Promise<string | null> {
    return unlessMissing(readFile(join(this.#path, name), "utf8"));
  }

  async announce(name: string): Promise<void> {
    await (await open(join(this.#path, name), "a")).close();
  }

  async stage(name: string, content: string | Uint8Array): Promise<void> {
    const path = join(this.#path, name);
    const file = (await unlessMissing(open(path, "wx"))) ?? (await this.#make(path));
    try {
      const old = name.endsWith(".data") ? await unlessMissing(stat(this.#place)) : null;
      if (old !== null) await file.chmod(old.mode & 0o7777);
      await file.writeFile(content);
      if (this.#durable) await file.sync();
    } finally {
      await file.close();
    }
  }

  async #make(path: string): Promise<FileHandle> {
    makeFolders(this.#path);
    await this.#sync(dirname(this.#path));
    return open(path, "wx");
  }

  remove(name: string): Promise<void> {
    return rm(join(this.#path, name), { force: true });
  }

  async moveToFloor(name: string): Promise<boolean> {
    const moved = await this.#move(name, join(this.#path, floorName));
    if (moved) await this.#sync(this.#path);
    return moved;
  }

  async moveToPlace(name: string): Promise<boolean> {
    this.placed = await this.#move(name, this.#place);
    if (this.placed) await this.#sync(dirname(this.#place));
    return this.placed;
  }

  async #move(name: string, to: string): Promise<boolean> {
    return (await unlessMissing(rename(join(this.#path, name), to).then(() => true))) ?? false;
  }

  /** Puts the entries of a folder on disk; Windows has no call for it. */
  async #sync(path: string): Promise<void> {
    if (!this.#durable || process.platform === "win32") return;
    const handle = await open(path, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

/** Where a file is, or will be. A chain of links that has no end is refused by realpath. */
async function placeOf(path: string): Promise<string> {
  const there = await unlessMissing(realpath(path));
  if (there !== null) return there;
  const folder = await realpath(dirname(path));
  const place = join(folder, basename(path));
  const named = await readlink(place).catch(() => null);
  return named === null ? place : placeOf(resolve(folder, named));
}

async function unlessMissing<T>(looking: Promise<T>): Promise<T | null> {
  try {
    return await looking;
  } catch (error) {
    if (Reflect.get(Object(error), "code") === "ENOENT") return null;
    throw error;
  }
}
