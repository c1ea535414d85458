/** The commands on MySQL and MariaDB, by URL. */
import { tellCliStory } from "../helpers/cli-story.ts";
import { testMysql } from "../helpers/mysql.ts";

tellCliStory({
  start: async () => {
    const server = await testMysql({ durable: true });
    return { url: await server.database(), close: () => server.stop() };
  },
  doctor: /schema: .*version 1/,
  migrates: true,
});
