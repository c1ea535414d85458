/** The commands on ZooKeeper, by URL: plain, and over TLS with a certificate of our own. */
import { describe, expect, it } from "vitest";
import { makeFolder, removeFolder } from "../../scripts/lib/for-tests.mjs";
import { makeCertificates } from "../helpers/certificates.ts";
import { tellCliStory } from "../helpers/cli-story.ts";
import { CliRig } from "../helpers/cli.ts";
import { givenOrStarted, secured } from "../helpers/zookeeper.ts";

const doctor = /ZooKeeper 3\.\d+/;

describe("plain", () => {
  tellCliStory({
    start: async () => {
      const rig = await givenOrStarted();
      return { url: `zookeeper://${rig.hosts}`, close: () => rig.close() };
    },
    doctor,
  });
});

describe("over TLS", () => {
  tellCliStory({
    start: async () => {
      const folder = await makeFolder("zookeeper-tls");
      const certificates = await makeCertificates(folder);
      const rig = await secured(folder, certificates, true);
      const { cert, key } = certificates.clientFiles;
      return {
        url: `zookeepers://${rig.secure}?ca=${certificates.files.ca}&cert=${cert}&key=${key}`,
        close: () => Promise.all([rig.close(), removeFolder(folder)]),
      };
    },
    doctor,
  });
});

it("a server that nobody reaches is told, by every command", async () => {
  const rig = new CliRig({ HOLDFAST_STORE: "zookeeper://127.0.0.1:1" });
  const commands = [["ls"], ["show", "x"], ["doctor"], ["run", "x", "--", "true"]];
  for (const words of commands) {
    const ended = await rig.run(words);
    const [first, hint] = ended.stderr.split("\n");
    expect(first).toMatch(/^holdfast: the store zookeeper:\/\/127\.0\.0\.1:1 does not /);
    // Which does not point to itself.
    expect(hint).toMatch(words[0] === "doctor" ? /its own log/ : /holdfast doctor/);
    expect(ended.code).toBe(69);
  }
  await rig.end();
}, 30_000);
