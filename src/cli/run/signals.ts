/** The signals that reach this process while a command runs or is waited for, and what becomes of each. */

/** Signals that end a wait, and that a command gets as they come. */
export const ending = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Signals that a command gets as they come, and that mean nothing to us. SIGWINCH tells editors of the terminal's size. */
const passing = ["SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;

/** What to do with signals. */
export interface Receiver {
  /** A signal that is to reach the command. */
  received(signal: NodeJS.Signals): void;
  /** Ctrl-Z: about to stop. */
  stopping(): void;
  /** Going on after a stop, however it came about. */
  continuing(): void;
}

/** Listens to all of them; gives the function that ends it. */
export function listen(receiver: Receiver): () => void {
  const stop = (): void => {
    receiver.stopping();
    // By the signal's own effect, and not by SIGSTOP: the kernel does not stop whom nobody could continue.
    process.off("SIGTSTP", stop);
    process.kill(process.pid, "SIGTSTP");
    process.on("SIGTSTP", stop);
    receiver.continuing();
  };
  const goOn = (): void => receiver.continuing();
  const receive = (signal: NodeJS.Signals): void => receiver.received(signal);
  for (const signal of [...ending, ...passing]) process.on(signal, receive);
  process.on("SIGTSTP", stop).on("SIGCONT", goOn);
  return () => {
    for (const signal of [...ending, ...passing]) process.off(signal, receive);
    process.off("SIGTSTP", stop).off("SIGCONT", goOn);
  };
}

/** Whether a signal asks a program to end. */
export function isEnding(signal: NodeJS.Signals): boolean {
  return ending.some((name) => name === signal);
}
