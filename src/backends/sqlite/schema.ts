/** The tables in the file and their version; how the file is found and opened is left to file.ts. */

/** "hold" in ASCII: how a file of ours is told from one of another program. */
export const applicationId = 0x686f6c64;

/** The version of the tables below. A file of another one is refused. */
export const schemaVersion = 2;

/** Small pages: each that a call changes is written as a whole. */
export const pageSize = 1024;

/** After how many pages the log is written back into the file: 4 MB. */
export const checkpointPages = 4096;

/**
 * Tables:
 *  - store: one row. `boot` is the run of the machine whose clock the times of the entries are read by, `clock` a moment
 *    of it.
 *  - entries: the queues, in order. Times are microseconds of the machine's monotonic clock. `process` names the owner's
 *    process, and so its hub; `owner` is the rest about it, as JSON. `behind` is 1 if somebody was ahead when it was
 *    appended: of the others a queue has one at most, its first, so that only these need an index by id.
 *  - counter, a view: `seq` is the last that was given out; none above `ceiling` is given out before the disk has a higher
 *    ceiling. It is a row of entries, of the queue without a name, which nobody can ask for: where there are few entries
 *    a call changes one page instead of two, and pages are what a call costs.
 *  - evicted: the seqs of entries that somebody else took out, as long as they could have lived.
 */
export const schema: string = `
CREATE TABLE store (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  boot TEXT,
  clock INTEGER NOT NULL
);
INSERT INTO store VALUES (1, NULL, 0);
CREATE TABLE entries (
  queue TEXT NOT NULL,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  process TEXT NOT NULL,
  owner TEXT NOT NULL,
  behind INTEGER NOT NULL DEFAULT 0,
  mode TEXT NOT NULL DEFAULT 'write',
  weight INTEGER NOT NULL DEFAULT 1,
  permits INTEGER,
  metadata TEXT,
  PRIMARY KEY (queue, seq)
) WITHOUT ROWID;
INSERT INTO entries (queue, seq, id, since, until, process, owner) VALUES ('', 0, '', 0, 0, '', '');
CREATE VIEW counter AS SELECT until AS seq, since AS ceiling FROM entries WHERE queue = '' AND seq = 0;
CREATE TRIGGER entries_count AFTER INSERT ON entries BEGIN
  UPDATE entries SET until = NEW.seq WHERE queue = '' AND seq = 0;
END;
CREATE UNIQUE INDEX entries_by_id ON entries (queue, id) WHERE behind = 1;
CREATE TABLE evicted (seq INTEGER PRIMARY KEY, until INTEGER NOT NULL);
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion};
`;
