/**
 * A wall clock that can be set for one server alone: a small library, compiled where a compiler is and loaded before the C
 * library, that adds an offset from a file to what programs are told. The monotonic clock is left as it is.
 */
import { execFile } from "node:child_process";
import { chmod, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeFolder, removeFolder } from "./server-process.ts";

const execute = promisify(execFile);

const source = `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long long none;
static const volatile long long *offset_ms = &none;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("HOLDFAST_CLOCK");
  int file = path == NULL ? -1 : open(path, O_RDONLY);
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) offset_ms = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  long long ns = now->tv_nsec + (*offset_ms % 1000) * 1000000LL;
  now->tv_sec += *offset_ms / 1000 + (ns >= 1000000000LL) - (ns < 0);
  now->tv_nsec = (ns + 1000000000LL) % 1000000000LL;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now == NULL) return 0;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (seconds != NULL) *seconds = precise.tv_sec;
  return precise.tv_sec;
}
`;

/** The wall clock of one or more servers. */
export class ClockShim {
  /** What a server has to be started with. */
  readonly env: NodeJS.ProcessEnv;
  readonly #folder: string;
  readonly #file: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, "offset");
    this.env = { LD_PRELOAD: join(folder, "clock.so"), HOLDFAST_CLOCK: this.#file };
  }

  /** Builds it; null where that cannot be done: no C compiler, or not Linux. */
  static async build(): Promise<ClockShim | null> {
    if (process.platform !== "linux") return null;
    const folder = await makeFolder("clock");
    try {
      const shim = new ClockShim(folder);
      // A server may run as another user.
      await chmod(folder, 0o755);
      await writeFile(join(folder, "clock.c"), source);
      await shim.set(0);
      await execute("cc", ["-O2", "-shared", "-fPIC", "-o", "clock.so", "clock.c"], { cwd: folder });
      return shim;
    } catch {
      await removeFolder(folder);
      return null;
    }
  }

  /** Sets the clock to so many milliseconds ahead of the real one. In place, so that those who have mapped it see it. */
  async set(aheadMs: number): Promise<void> {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(Math.round(aheadMs)));
    const file = await open(this.#file, "a+", 0o644);
    await file.close();
    const inPlace = await open(this.#file, "r+");
    await inPlace.write(bytes, 0, bytes.length, 0);
    await inPlace.close();
  }

  remove(): Promise<void> {
    return removeFolder(this.#folder);
  }
}
