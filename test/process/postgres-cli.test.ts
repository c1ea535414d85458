/** The commands on PostgreSQL, by URL. */
import { tellCliStory } from "../helpers/cli-story.ts";
import { testPostgres } from "../helpers/postgres.ts";

tellCliStory({
  start: async () => {
    const server = await testPostgres({ durable: true });
    return { url: await server.database(), close: () => server.stop() };
  },
  doctor: /schema: .*version 1/,
  migrates: true,
});
