/** The PostgreSQL of src/verify/servers for tests, benches and examples, from the build. */
export { startPgbouncer, startPostgres } from "../../dist/verify/servers/postgres.js";
