/** The guards of holdfast, for the resources that its locks protect: re-exports only. No driver is loaded by it. */
export { FileGuard, fileGuard, type FileGuardOptions } from "./file.ts";
export { type Guard, isStale } from "./guard.ts";
export { fencingHeader, type HttpFenceOptions, type Problem, problemOf, problemType } from "./http.ts";
export { fastifyFence, type FastifyReplyLike, type FastifyRequestLike } from "./http/fastify.ts";
export { type Fetch, fencedFetch } from "./http/fetch.ts";
export { honoFence, type HonoContextLike } from "./http/hono.ts";
export { expressFence, fencedHandler, type NodeHandler } from "./http/node.ts";
export {
  MemoryGuard,
  memoryGuard,
  type MemoryGuardOptions,
  type MemoryWriteOptions,
  type Work,
} from "./memory.ts";
export {
  type FencedScript,
  RedisGuard,
  redisGuard,
  type RedisGuardOptions,
  type RedisWriteOptions,
} from "./redis.ts";
export {
  checkSequencer,
  formatSequencer,
  isSequencerHeld,
  parseSequencer,
  type Sequencer,
  type SequencerCheck,
} from "./sequencer.ts";
export { type FencedRow, SqlGuard } from "./sql.ts";
export {
  type Connection,
  type MysqlConnection,
  mysqlGuard,
  type MysqlGuardOptions,
  type PgConnection,
  postgresGuard,
  type PostgresGuardOptions,
} from "./sql/databases.ts";
export { type Held, type Holder, highestToken, parseToken } from "./token.ts";
