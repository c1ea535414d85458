/** The servers that tests of backends need and where to get them; finding and installing is left to lib/provide-servers.mjs. */
import { mysql9 } from "./lib/mysql-9.mjs";

/**
 * @typedef {object} Server
 * @property {string} name as people call it
 * @property {readonly string[]} backends the folders under src/backends whose tests need it; none: it is for tests of no backend
 * @property {readonly string[]} binaries programs looked up on PATH and in `folders`, or absolute paths of other files
 * @property {readonly string[]} [folders] where Debian puts programs that are not on PATH; `*` stands for one folder
 * @property {readonly string[]} packages Debian packages that bring the binaries
 * @property {{ suite: string, folder: string }} [fetch] the packages are not installed, but unpacked from this suite into this folder
 * @property {string} [url] environment variable: a running server given there replaces all of the above; a tool has none
 */

/** @type {readonly Server[]} */
export const servers = [
  {
    name: "Redis",
    backends: ["redis", "redlock"],
    binaries: ["redis-server", "redis-cli"],
    packages: ["redis-server", "redis-sentinel"],
    url: "HOLDFAST_TEST_REDIS_URL",
  },
  {
    // Builds the library that moves the clocks of servers.
    name: "C compiler",
    backends: ["redis", "redlock"],
    binaries: ["gcc"],
    packages: ["gcc", "libc6-dev"],
  },
  {
    // Makes certificates.
    name: "OpenSSL",
    backends: ["redis", "etcd", "zookeeper"],
    binaries: ["openssl"],
    packages: ["openssl"],
  },
  {
    name: "etcd",
    backends: ["etcd"],
    // And network namespaces that cut a member off.
    binaries: ["etcd", "etcdctl", "ip"],
    packages: ["etcd-server", "etcd-client", "iproute2"],
    url: "HOLDFAST_TEST_ETCD_URL",
  },
  {
    name: "ZooKeeper",
    backends: ["zookeeper"],
    // Curator and a compiler: the tests stand in one queue with a Java service.
    binaries: ["java", "javac", "/usr/share/java/zookeeper.jar", "/usr/share/java/curator-recipes.jar"],
    packages: ["zookeeper", "libcurator-recipes-java", "openjdk-17-jdk-headless"],
    url: "HOLDFAST_TEST_ZOOKEEPER_URL",
  },
  {
    name: "PostgreSQL",
    backends: ["postgres"],
    binaries: ["initdb", "postgres", "pgbouncer"],
    folders: ["/usr/lib/postgresql/*/bin"],
    packages: ["postgresql", "pgbouncer"],
    url: "HOLDFAST_TEST_POSTGRES_URL",
  },
  {
    name: "MariaDB",
    backends: ["mysql"],
    binaries: ["mariadb-install-db", "mariadbd"],
    packages: ["mariadb-server"],
    url: "HOLDFAST_TEST_MYSQL_URL",
  },
  {
    name: "MySQL 9",
    backends: ["mysql"],
    binaries: [mysql9.program],
    packages: ["mysql-server-core"],
    // Debian's own release has MariaDB only.
    fetch: { suite: "sid", folder: mysql9.folder },
    url: mysql9.url,
  },
  {
    // They are asked what they make of the completion scripts.
    name: "Shells",
    backends: [],
    binaries: ["zsh", "fish"],
    packages: ["zsh", "fish"],
  },
];
