/** The commands on ZooKeeper, by URL. */
import { tellCliStory } from "../helpers/cli-story.ts";
import { givenOrStarted } from "../helpers/zookeeper.ts";

tellCliStory({
  start: async () => {
    const { hosts, close } = await givenOrStarted();
    return { url: `zookeeper://${hosts}`, close };
  },
  doctor: /ZooKeeper 3\.\d+/,
});
