/** The commands on MySQL and MariaDB, by URL. */
import { tellCliStory } from "../helpers/cli-story.ts";
import { testMysql } from "../helpers/mysql.ts";

tellCliStory({
  start: async () => {
    // A setting that doctor has nothing to say against.
    const server = await testMysql(["innodb-flush-log-at-trx-commit=1"]);
    return { url: await server.database(), close: () => server.stop() };
  },
  doctor: /schema: .*version 1/,
  migrates: true,
});
