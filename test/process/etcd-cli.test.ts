/** The commands on etcd, by URL. */
import { tellCliStory } from "../helpers/cli-story.ts";
import { startOne } from "../helpers/etcd.ts";

tellCliStory({
  start: async () => {
    const node = await startOne();
    return { url: `etcd://${new URL(node.endpoint).host}`, close: () => node.remove() };
  },
  doctor: /leader: all agree on/,
});
