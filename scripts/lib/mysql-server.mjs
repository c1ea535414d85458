/** The MariaDB of src/verify/servers for tests and benches, from the build. */
export { startMysql } from "../../dist/verify/servers/mysql.js";
