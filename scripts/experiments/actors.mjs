/** Clients of experiments as the experiment sees them: processes that do as they are told. What they can do is left to actor.mjs. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { endWithUs } from "../../dist/verify/servers/server-process.js";

/** Somebody whom an experiment tells what to do. */
export class Actor {
  /** @type {import("node:child_process").ChildProcess} */
  #child;
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map();
  #calls = 0;

  constructor() {
    const script = fileURLToPath(new URL("actor.mjs", import.meta.url));
    const env = { ...process.env, NODE_NO_WARNINGS: "1" };
    this.#child = fork(script, [], {
      serialization: "advanced",
      env,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#child.on(
      "message",
      (/** @type {{ call: number, value?: unknown, error?: string }} */ { call, value, error }) => {
        const waiting = this.#waiting.get(call);
        this.#waiting.delete(call);
        if (error === undefined) waiting?.resolve(value);
        else waiting?.reject(new Error(error));
      },
    );
    this.#child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the actor has ended"));
    });
    endWithUs(this.#child);
  }

  /**
   * @param {string} what
   * @param {unknown[]} args
   * @returns {Promise<any>}
   */
  ask(what, ...args) {
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#child.send({ call, what, args });
    });
  }

  stop() {
    this.#child.kill("SIGSTOP");
  }

  goOn() {
    this.#child.kill("SIGCONT");
  }

  /** @returns {Promise<void>} */
  end() {
    return new Promise((resolve) => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) return resolve();
      this.#child.once("exit", () => resolve());
      this.#child.kill("SIGKILL");
    });
  }
}
