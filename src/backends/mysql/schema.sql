-- The queues of the mysql backend: its tables, and the procedures that are its calls, for MySQL and MariaDB. Versions are applied in
-- order; each statement can be run again, since DDL has no transactions. Who applies them, and when, is left to migrate.ts.
--
-- Purpose: ordered queues of entries that live by the server's clock, told apart by their seq.
-- Keys: entries are found by (queue, seq); times are microseconds since 1970, as it was when a statement began.
-- Arguments: `append` and `place` take one request. All other calls take one JSON array of requests, so that calls that are made
-- together travel together; so do `append_all` and `look`. No is 0, null is 0.
-- Returns: every call gives one result set for each request, in their order.

-- version 1

DELIMITER //

-- One entry of one queue. `about` is a text for people that only clients read. One index is all that an append has to write: that
-- an id stands in a queue once is seen to by `append`, under the lock of the queue.
CREATE TABLE IF NOT EXISTS `:prefix:entries` (
  queue VARBINARY(540) NOT NULL,
  seq BIGINT NOT NULL,
  id VARBINARY(255) NOT NULL,
  writer BOOLEAN NOT NULL,
  weight BIGINT NOT NULL,
  permits BIGINT,
  appended_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  about TEXT CHARACTER SET utf8mb4 NOT NULL,
  PRIMARY KEY (queue, seq)
) ENGINE = InnoDB
//

-- The highest seq that was given to a queue of each shard. Its row is the lock of these queues, and it is never removed: seq
-- grows over empty queues, crashes and a clock that was set back. Queues that share a row only wait for each other.
CREATE TABLE IF NOT EXISTS `:prefix:shards` (
  shard INT NOT NULL PRIMARY KEY,
  seq BIGINT NOT NULL
) ENGINE = InnoDB
//

INSERT IGNORE INTO `:prefix:shards` (shard, seq)
SELECT a.n + 4 * b.n + 16 * c.n + 64 * d.n, 0
FROM (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS a,
  (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS b,
  (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS c,
  (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS d
//

-- Entries that somebody else took out, until their owner has asked or they would have expired.
CREATE TABLE IF NOT EXISTS `:prefix:evicted` (
  id VARBINARY(255) NOT NULL,
  seq BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (id, seq)
) ENGINE = InnoDB
//

-- The highest token that each resource of the user has seen; see fencedUpdate.
CREATE TABLE IF NOT EXISTS `:prefix:fences` (
  resource VARBINARY(540) NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL
) ENGINE = InnoDB
//

-- Names that rowLock locks in the user's own transaction.
CREATE TABLE IF NOT EXISTS `:prefix:row_locks` (
  name VARBINARY(540) NOT NULL PRIMARY KEY
) ENGINE = InnoDB
//

-- Purpose: where an entry stands, read in one statement, so that what is ahead belongs together.
-- Arguments: queue, seq, the moment; 0 for now.
-- Returns: one row: seq as text, µs left, µs of age, count and weight ahead, the nearest ahead and the nearest writer ahead as JSON,
-- seq of the first as text; no row if it is not there.
CREATE PROCEDURE IF NOT EXISTS `:prefix:place` (IN the_queue VARBINARY(540), IN the_seq BIGINT, IN the_now BIGINT)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
  IF the_now = 0 THEN SET the_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)); END IF;
  SELECT CAST(self.seq AS CHAR) AS seq, self.expires_at - the_now AS left_us, the_now - self.appended_at AS age_us,
    ahead.number AS number, ahead.weight AS weight,
    IF(nearest.seq IS NULL, NULL, JSON_ARRAY(CONVERT(nearest.id USING utf8mb4), nearest.writer, nearest.weight, nearest.permits,
      CAST(nearest.seq AS CHAR), nearest.expires_at - the_now, the_now - nearest.appended_at, nearest.about)) AS nearest,
    IF(writer.seq IS NULL, NULL, JSON_ARRAY(CONVERT(writer.id USING utf8mb4), writer.writer, writer.weight, writer.permits,
      CAST(writer.seq AS CHAR), writer.expires_at - the_now, the_now - writer.appended_at, writer.about)) AS writer,
    CAST(ahead.first AS CHAR) AS first_seq
  FROM `:prefix:entries` AS self
  JOIN (
    SELECT COUNT(*) AS number, CAST(COALESCE(SUM(e.weight), 0) AS SIGNED) AS weight, MAX(e.seq) AS nearest, MIN(e.seq) AS first,
      MAX(CASE WHEN e.writer THEN e.seq END) AS writer
    FROM `:prefix:entries` AS e WHERE e.queue = the_queue AND e.seq < the_seq
  ) AS ahead
  LEFT JOIN `:prefix:entries` AS nearest ON nearest.queue = the_queue AND nearest.seq = ahead.nearest
  LEFT JOIN `:prefix:entries` AS writer ON writer.queue = the_queue AND writer.seq = ahead.writer
  WHERE self.queue = the_queue AND self.seq = the_seq;
END
//

-- Purpose: puts an entry at the tail of its queue, or finds it there again.
-- Arguments: queue, id, writer, weight, permits or 0, ttl in µs, demand: refuse it unless it would hold, about, again: it was there
-- before, and found itself gone, alone: it is a transaction of its own.
-- Returns: a row as `place` gives it, or one without what is ahead if nobody is; no row if it was refused.
CREATE PROCEDURE IF NOT EXISTS `:prefix:append` (IN the_queue VARBINARY(540), IN the_id VARBINARY(255), IN is_writer BOOLEAN,
  IN the_weight BIGINT, IN the_permits BIGINT, IN the_ttl BIGINT, IN demand BOOLEAN, IN the_about TEXT CHARACTER SET utf8mb4,
  IN again BOOLEAN, IN alone BOOLEAN)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE first_seq BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  IF alone THEN
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
  END IF;
  IF again THEN DELETE FROM `:prefix:evicted` WHERE id = the_id; END IF;
  -- 1. Lock the queue and take the next seq. Statements that follow see what was committed before that.
  UPDATE `:prefix:shards` SET seq = LAST_INSERT_ID(GREATEST(seq + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
    WHERE shard = CRC32(the_queue) & 255;
  IF ROW_COUNT() = 0 THEN
    -- Somebody has emptied the table, and without its row nothing is locked.
    INSERT IGNORE INTO `:prefix:shards` (shard, seq) VALUES (CRC32(the_queue) & 255, 0);
    UPDATE `:prefix:shards` SET seq = LAST_INSERT_ID(GREATEST(seq + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
      WHERE shard = CRC32(the_queue) & 255;
  END IF;
  SELECT MIN(seq) INTO first_seq FROM `:prefix:entries` WHERE queue = the_queue;
  IF first_seq IS NULL AND (NOT demand OR the_permits = 0 OR the_weight <= the_permits) THEN
    -- 2. Nobody is there: the common case, in as few steps as possible, since each costs some microseconds.
    INSERT INTO `:prefix:entries` (queue, seq, id, writer, weight, permits, appended_at, expires_at, about)
      VALUES (the_queue, LAST_INSERT_ID(), the_id, is_writer, the_weight, NULLIF(the_permits, 0),
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + the_ttl, the_about);
    SELECT CAST(LAST_INSERT_ID() AS CHAR) AS seq, the_ttl AS left_us;
  ELSE
    BEGIN
      DECLARE tries INT DEFAULT 0;
      DECLARE next_seq BIGINT DEFAULT LAST_INSERT_ID();
      DECLARE the_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
      DECLARE own_seq, ahead, ahead_weight, writer_seq, next_expiry BIGINT;
      -- 3. Look at the queue, after taking out what has expired.
      REPEAT
        SET tries = tries + 1;
        SELECT COUNT(*), COALESCE(SUM(weight), 0), MAX(CASE WHEN writer THEN seq END), MIN(expires_at), MAX(CASE WHEN id = the_id THEN seq END)
          INTO ahead, ahead_weight, writer_seq, next_expiry, own_seq FROM `:prefix:entries` WHERE queue = the_queue;
        IF next_expiry IS NULL OR next_expiry > the_now THEN SET tries = 2; END IF;
        IF tries = 1 THEN DELETE FROM `:prefix:entries` WHERE queue = the_queue AND expires_at <= the_now; END IF;
      UNTIL tries = 2 END REPEAT;
      -- 4. Find the entry again, refuse it, or put it at the tail.
      IF own_seq IS NOT NULL THEN
        CALL `:prefix:place`(the_queue, own_seq, the_now);
      ELSEIF demand AND NOT CASE
        WHEN the_permits <> 0 THEN ahead_weight + the_weight <= the_permits
        WHEN is_writer THEN ahead = 0
        ELSE writer_seq IS NULL
      END THEN
        SELECT NULL AS seq FROM DUAL WHERE FALSE;
      ELSE
        INSERT INTO `:prefix:entries` (queue, seq, id, writer, weight, permits, appended_at, expires_at, about)
          VALUES (the_queue, next_seq, the_id, is_writer, the_weight, NULLIF(the_permits, 0), the_now, the_now + the_ttl, the_about);
        CALL `:prefix:place`(the_queue, next_seq, the_now);
      END IF;
    END;
  END IF;
  IF alone THEN COMMIT; END IF;
END
//

-- Purpose: appends many, in their order.
-- Arguments: [{queue, id, writer, weight, permits, ttl, demand, about, again}], as `append` takes them.
-- Returns: for each what `append` gives.
CREATE PROCEDURE IF NOT EXISTS `:prefix:append_all` (IN requests JSON)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE at INT DEFAULT 0;
  DECLARE r LONGTEXT CHARACTER SET utf8mb4;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  WHILE at < JSON_LENGTH(requests) DO
    SET r = JSON_EXTRACT(requests, CONCAT('$[', at, ']'));
    SET at = at + 1;
    CALL `:prefix:append`(JSON_UNQUOTE(JSON_EXTRACT(r, '$.queue')), JSON_UNQUOTE(JSON_EXTRACT(r, '$.id')), JSON_EXTRACT(r, '$.writer'),
      JSON_EXTRACT(r, '$.weight'), JSON_EXTRACT(r, '$.permits'), JSON_EXTRACT(r, '$.ttl'), JSON_EXTRACT(r, '$.demand'),
      JSON_UNQUOTE(JSON_EXTRACT(r, '$.about')), JSON_EXTRACT(r, '$.again'), FALSE);
  END WHILE;
  COMMIT;
END
//

-- Purpose: takes entries out.
-- Arguments: [{queue, id, evict: somebody else than the owner does it, seq as text: only the entry that has it}].
-- Returns: for each a row: whether it was there and had not expired.
CREATE PROCEDURE IF NOT EXISTS `:prefix:remove` (IN requests JSON)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE at INT DEFAULT 0;
  DECLARE r LONGTEXT CHARACTER SET utf8mb4;
  DECLARE the_queue VARBINARY(540);
  DECLARE the_id VARBINARY(255);
  DECLARE evicting, was_live BOOLEAN;
  DECLARE the_seq, the_now BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  WHILE at < JSON_LENGTH(requests) DO
    SET r = JSON_EXTRACT(requests, CONCAT('$[', at, ']'));
    SET at = at + 1;
    SET the_queue = JSON_UNQUOTE(JSON_EXTRACT(r, '$.queue'));
    SET the_id = JSON_UNQUOTE(JSON_EXTRACT(r, '$.id'));
    SET evicting = JSON_EXTRACT(r, '$.evict');
    SET the_seq = JSON_UNQUOTE(JSON_EXTRACT(r, '$.seq'));
    IF the_seq = 0 THEN SELECT MIN(seq) INTO the_seq FROM `:prefix:entries` WHERE queue = the_queue AND id = the_id; END IF;
    SET the_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    IF evicting THEN
      DELETE FROM `:prefix:evicted` WHERE expires_at <= the_now;
      INSERT IGNORE INTO `:prefix:evicted` (id, seq, expires_at) SELECT id, seq, expires_at FROM `:prefix:entries`
        WHERE queue = the_queue AND seq = the_seq AND id = the_id AND expires_at > the_now FOR UPDATE;
    END IF;
    DELETE FROM `:prefix:entries` WHERE queue = the_queue AND seq = the_seq AND id = the_id AND expires_at > the_now;
    SET was_live = ROW_COUNT() > 0;
    IF NOT was_live THEN
      DELETE FROM `:prefix:entries` WHERE queue = the_queue AND seq = the_seq AND id = the_id;
    END IF;
    SELECT was_live;
  END WHILE;
  COMMIT;
END
//

-- Purpose: extends the lives of entries, never shortens one and never brings one back.
-- Arguments: [{queue, id, seq as text, ttl in µs}].
-- Returns: for each a row: µs left, or null if it is gone; and whether it was evicted.
CREATE PROCEDURE IF NOT EXISTS `:prefix:renew` (IN requests JSON)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE at INT DEFAULT 0;
  DECLARE r LONGTEXT CHARACTER SET utf8mb4;
  DECLARE the_queue VARBINARY(540);
  DECLARE the_id VARBINARY(255);
  DECLARE was_evicted BOOLEAN;
  DECLARE the_seq, the_ttl, expiry, the_now BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  WHILE at < JSON_LENGTH(requests) DO
    SET r = JSON_EXTRACT(requests, CONCAT('$[', at, ']'));
    SET at = at + 1;
    SET the_queue = JSON_UNQUOTE(JSON_EXTRACT(r, '$.queue'));
    SET the_id = JSON_UNQUOTE(JSON_EXTRACT(r, '$.id'));
    SET the_seq = JSON_UNQUOTE(JSON_EXTRACT(r, '$.seq'));
    SET the_ttl = JSON_EXTRACT(r, '$.ttl');
    SET expiry = NULL, was_evicted = FALSE;
    SELECT MAX(expires_at) INTO expiry FROM `:prefix:entries` WHERE queue = the_queue AND seq = the_seq AND id = the_id FOR UPDATE;
    SET the_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    IF expiry > the_now THEN
      SET expiry = GREATEST(expiry, the_now + the_ttl);
      UPDATE `:prefix:entries` SET expires_at = expiry WHERE queue = the_queue AND seq = the_seq;
    ELSE
      SET expiry = NULL;
      DELETE FROM `:prefix:evicted` WHERE id = the_id AND seq = the_seq;
      SET was_evicted = ROW_COUNT() > 0;
    END IF;
    SELECT expiry - the_now AS left_us, was_evicted;
  END WHILE;
  COMMIT;
END
//

-- Purpose: looks where entries stand, without taking anything out: what has expired still counts.
-- Arguments: [{queue, seq as text}].
-- Returns: for each a row as `place` gives it; no row if it is not there.
CREATE PROCEDURE IF NOT EXISTS `:prefix:look` (IN requests JSON)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE at INT DEFAULT 0;
  DECLARE r LONGTEXT CHARACTER SET utf8mb4;
  DECLARE the_queue VARBINARY(540);
  DECLARE the_seq BIGINT;
  WHILE at < JSON_LENGTH(requests) DO
    SET r = JSON_EXTRACT(requests, CONCAT('$[', at, ']'));
    SET at = at + 1;
    SET the_queue = JSON_UNQUOTE(JSON_EXTRACT(r, '$.queue'));
    SET the_seq = JSON_UNQUOTE(JSON_EXTRACT(r, '$.seq'));
    CALL `:prefix:place`(the_queue, the_seq, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)));
  END WHILE;
END
//

-- Purpose: takes out what has expired and nobody has met for a while, everywhere.
-- Returns: a row: how many entries.
CREATE PROCEDURE IF NOT EXISTS `:prefix:sweep` (IN requests JSON)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE the_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  DELETE FROM `:prefix:evicted` WHERE expires_at <= the_now;
  DELETE FROM `:prefix:entries` WHERE expires_at <= the_now;
  SELECT ROW_COUNT() AS swept;
END
//

-- Purpose: lists a queue.
-- Arguments: [{queue}].
-- Returns: for each its entries, first to last, as JSON; also those that have expired.
CREATE PROCEDURE IF NOT EXISTS `:prefix:list` (IN requests JSON)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE at INT DEFAULT 0;
  DECLARE the_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  DECLARE the_queue VARBINARY(540);
  WHILE at < JSON_LENGTH(requests) DO
    SET the_queue = JSON_UNQUOTE(JSON_EXTRACT(requests, CONCAT('$[', at, '].queue')));
    SET at = at + 1;
    SELECT JSON_ARRAY(CONVERT(e.id USING utf8mb4), e.writer, e.weight, e.permits, CAST(e.seq AS CHAR), e.expires_at - the_now,
      the_now - e.appended_at, e.about) AS entry
    FROM `:prefix:entries` AS e WHERE e.queue = the_queue ORDER BY e.seq;
  END WHILE;
END
//

-- Purpose: names the queues that have live entries.
-- Arguments: [{prefix}].
-- Returns: for each the names that start with the prefix.
CREATE PROCEDURE IF NOT EXISTS `:prefix:queues` (IN requests JSON)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE at INT DEFAULT 0;
  DECLARE the_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  DECLARE the_prefix VARBINARY(540);
  WHILE at < JSON_LENGTH(requests) DO
    SET the_prefix = JSON_UNQUOTE(JSON_EXTRACT(requests, CONCAT('$[', at, '].prefix')));
    SET at = at + 1;
    SELECT CONVERT(e.queue USING utf8mb4) AS name FROM `:prefix:entries` AS e
      WHERE LEFT(e.queue, LENGTH(the_prefix)) = the_prefix AND e.expires_at > the_now GROUP BY e.queue;
  END WHILE;
END
//
