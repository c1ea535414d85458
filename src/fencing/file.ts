/** The guard for files: atomic replacement in the order of tokens, among all processes of a machine; the proof is in file/protocol.ts. */
import { LockError } from "../core/errors.ts";
import { DiskFolder } from "./file/folder.ts";
import { look, replace } from "./file/protocol.ts";
import { type Guard, staleToken } from "./guard.ts";
import { type Holder, tokenOf } from "./token.ts";

/** Options of fileGuard. */
export interface FileGuardOptions {
  /**
   * Whether what was written, and its token, survive a power cut: they are on disk before a call resolves.
   * @default true
   */
  readonly durable?: boolean | undefined;
}

/** A guard of files on a local file system. */
export function fileGuard({ durable = true }: FileGuardOptions = {}): FileGuard {
  return new FileGuard(durable);
}

/**
 * Guards files by their paths. The tokens of `data.json` are kept beside it, in the folder `.data.json.fence`: whoever
 * deletes that deletes the memory of the guard. No process waits for another, and none that dies or is paused at any step
 * does harm.
 */
export class FileGuard implements Guard {
  readonly #durable: boolean;

  /** @internal Made by fileGuard. */
  constructor(durable: boolean) {
    this.#durable = durable;
  }

  /**
   * Replaces a file as a whole, unless it has seen a newer token: then it rejects with LOCK_STALE_TOKEN and the file is as
   * it was. Readers find the old content or the new, never a part. Its mode stays; its owner becomes the writer.
   */
  write(path: string, holder: Holder, content: string | Uint8Array): Promise<void> {
    return this.#replace(path, holder, content);
  }

  show(path: string, holder: Holder): Promise<void> {
    return this.#replace(path, holder, null);
  }

  async highest(path: string): Promise<bigint | null> {
    const { highest } = await DiskFolder.of(path, this.#durable).then(look).catch(failing(path, null));
    return highest;
  }

  async #replace(path: string, holder: Holder, content: string | Uint8Array | null): Promise<void> {
    const { token, lock } = tokenOf(holder);
    let folder: DiskFolder | null = null;
    try {
      folder = await DiskFolder.of(path, this.#durable);
      const highest = await replace(folder, token, content);
      if (highest !== null) throw staleToken({ resource: path, token, highest, lock, backend: "file" });
    } catch (error) {
      if (error instanceof LockError && error.code === "LOCK_STALE_TOKEN") throw error;
      failing(path, folder)(error);
    }
  }
}

/** Throws what an error of the file system means. */
function failing(path: string, folder: DiskFolder | null): (cause: unknown) => never {
  return (cause) => {
    const details = { backend: "file", cause };
    if (folder?.placed === true) {
      const message = `${path} was written, but it may not survive a power cut: ${String(cause)}`;
      throw new LockError("LOCK_OUTCOME_UNKNOWN", message, details);
    }
    throw new LockError("LOCK_UNAVAILABLE", `${path} could not be written: ${String(cause)}`, details);
  };
}
