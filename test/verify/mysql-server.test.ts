/** A throwaway MariaDB beside other servers of this machine. */
import { access, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startMysql } from "../../scripts/lib/mysql-server.mjs";

it("leaves the temporary files of others alone", async () => {
  const ofAnother = join(tmpdir(), `#sql-temptable-${process.pid}-1-1.MAI`);
  onTestFinished(() => rm(ofAnother, { force: true }));
  await writeFile(ofAnother, "");
  const { server } = await startMysql();
  await server.remove();
  await expect(access(ofAnother)).resolves.toBeUndefined();
}, 60_000);
