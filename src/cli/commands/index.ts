/** All commands, in the order in which the help shows them. */
import type { Command } from "../command.ts";
import { completionCommand } from "./completion.ts";
import { doctor } from "./doctor.ts";
import { helpCommand } from "./help.ts";
import { ls } from "./ls.ts";
import { migrate } from "./migrate.ts";
import { release } from "./release.ts";
import { run } from "./run.ts";
import { show } from "./show.ts";
import { verify } from "./verify.ts";
import { watch } from "./watch.ts";

/** Every command there is. */
export const commands: readonly Command[] = [
  run,
  ls,
  show,
  watch,
  release,
  doctor,
  migrate,
  verify,
  completionCommand(() => commands),
  helpCommand(() => commands),
];
