/** The tables in the file and their version; how the file is found and opened is left to file.ts. */

/** "hold" in ASCII: how a file of ours is told from one of another program. */
export const applicationId = 0x686f6c64;

/** The version of the tables below. A file of a newer one is refused. */
export const schemaVersion = 1;

/** Small pages: a call changes two of them, and each is written as a whole, in bytes. */
export const pageSize = 1024;

/** After how many pages the log is written back into the file: 4 MB. */
export const checkpointPages = 4096;

/**
 * Tables:
 *  - store: one row. `seq` is the last that was given out; none above `ceiling` is given out before the disk has a higher
 *    ceiling; `boot` is the run of the machine whose clock the times of the entries are read by, `clock` a moment of it.
 *  - entries: the queues, in order. Times are microseconds of the machine's monotonic clock. `process` names the owner's
 *    process, and so its hub, and `slot` its client there. `behind` is 1 if somebody was ahead when it was appended: of
 *    the others a queue has one at most, its first, so that only these need an index by id.
 *  - evicted: the seqs of entries that somebody else took out, as long as they could have lived.
 */
export const schema: string = `
CREATE TABLE store (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  ceiling INTEGER NOT NULL,
  boot TEXT,
  clock INTEGER NOT NULL
);
INSERT INTO store VALUES (1, 0, 0, NULL, 0);
CREATE TABLE entries (
  queue TEXT NOT NULL,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  mode TEXT NOT NULL,
  weight INTEGER NOT NULL,
  permits INTEGER,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  behind INTEGER NOT NULL,
  process TEXT NOT NULL,
  slot INTEGER NOT NULL,
  client TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  label TEXT,
  metadata TEXT,
  PRIMARY KEY (queue, seq)
) WITHOUT ROWID;
CREATE TRIGGER entries_count AFTER INSERT ON entries BEGIN UPDATE store SET seq = NEW.seq; END;
CREATE UNIQUE INDEX entries_by_id ON entries (queue, id) WHERE behind = 1;
CREATE TABLE evicted (seq INTEGER PRIMARY KEY, until INTEGER NOT NULL);
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion};
`;
