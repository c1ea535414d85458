/** `holdfast verify`: real clients, real faults, and a verdict about what the store promised. What happens is left to src/verify. */
import { clusterNames } from "../../verify/clusters/names.ts";
import { clientFaults } from "../../verify/live/plan.ts";
import type { Command } from "../command.ts";
import { ending } from "../run/signals.ts";

export const verify: Command = {
  name: "verify",
  summary: "Break clients, networks and servers, and judge what the locks did",
  usage: "[options]",
  takes: { names: [], least: 0 },
  about: [
    "Starts client processes that use the store, and two resources, one of which checks tokens. Pauses, kills and blocks clients, breaks their connections through proxies of its own, records what everybody saw, heals, and judges it. All locks that it uses start with a random prefix; it takes away what it leaves.",
    "With --cluster it starts throwaway servers itself and breaks these, too. Ends with 0 if all promises held, 1 if one did not, 2 if that cannot be said.",
  ],
  options: {
    for: { value: "TIME", help: "how long faults may come; 60s if not given" },
    clients: { value: "N", help: "how many client processes; 5 if not given" },
    faults: {
      value: "LIST",
      help: `which, by commas: ${clientFaults.join(", ")}, or none; all that can be had if not given`,
    },
    cluster: {
      value: "NAME",
      help: `start throwaway servers and break them, too, instead of --store: ${clusterNames.join(", ")}`,
      choices: clusterNames,
    },
    ttl: { value: "TIME", help: "the ttl of the locks; 2s if not given" },
    seed: { value: "N", help: "the number that decides which fault comes when; by chance if not given" },
    out: {
      value: "FOLDER",
      help: "where report.html and history.jsonl are written; ./holdfast-verify if not given",
    },
  },
  examples: [
    ["holdfast verify --store redis://cache:6379 --for 60s", "a minute of bad luck for a store of yours"],
    ["holdfast verify --cluster etcd --faults pause,kill,partition", "servers of its own, some faults"],
    ["holdfast verify --cluster redis-failover --seed 42", "see a promise that is not made be broken"],
  ],

  async run(call) {
    const ended = new AbortController();
    let signal: NodeJS.Signals | null = null;
    const end = (by: NodeJS.Signals): void => {
      signal ??= by;
      ended.abort(new Error(by));
    };
    for (const each of ending) process.on(each, end);
    try {
      const { runVerify } = await import("../verify/run.ts");
      return await runVerify(call, ended.signal);
    } catch (error) {
      if (signal !== null) return signal;
      throw error;
    } finally {
      call.output.progress(null);
      for (const each of ending) process.off(each, end);
    }
  },
};
