/** The commands on ZooKeeper, by URL. */
import { tellCliStory } from "../helpers/cli-story.ts";
import { givenOrStarted } from "../helpers/zookeeper.ts";

tellCliStory({
  start: async () => {
    const rig = await givenOrStarted();
    return { url: `zookeeper://${rig.hosts}`, close: () => rig.close() };
  },
  doctor: /ZooKeeper 3\.\d+/,
});
