-- The queues of the postgres backend: its tables, and the functions that are its calls. Versions are applied in order, each once;
-- who applies them, and when, is left to migrate.ts.
--
-- Purpose: ordered queues of entries that live by the server's clock, told apart by their seq.
-- Keys: entries are found by (queue, seq); times are microseconds since 1970.
-- Arguments: `append` and `remove` take one request. All other calls take one jsonb array of requests, so that calls that are made
-- together travel together; so do `append_all` and `remove_all`.
-- Returns: `append` and `remove` give one answer, all others one jsonb array of answers, in the order of the requests.

-- version 1

-- One entry of one queue. `about` is a text for people that only clients read. One index is all that an append has to write: that
-- an id stands in a queue once is seen to by `append`, under the lock of the queue.
CREATE TABLE :"schema".entries (
  queue text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  writer boolean NOT NULL,
  weight bigint NOT NULL,
  permits bigint,
  appended_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  channel text NOT NULL,
  about text NOT NULL,
  PRIMARY KEY (queue, seq)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The highest seq that was given to a queue of each shard. Its row is never removed: seq grows over empty queues, crashes and a
-- clock that was set back. The rows begin with room around them; the fillfactor is raised afterwards, since a page that is fuller than
-- that is tidied up by each update.
CREATE TABLE :"schema".shards (
  shard integer PRIMARY KEY,
  seq bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

INSERT INTO :"schema".shards SELECT shard, 0 FROM generate_series(0, 255) AS shard;

ALTER TABLE :"schema".shards SET (fillfactor = 100);

-- Entries that somebody else took out, until their owner has asked or they would have expired.
CREATE TABLE :"schema".evicted (
  id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  queue text COLLATE "C" NOT NULL,
  expires_at bigint NOT NULL,
  channel text NOT NULL,
  PRIMARY KEY (id, seq)
);

-- The highest token that each resource of the user has seen; see fencedUpdate.
CREATE TABLE :"schema".fences (
  resource text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL
);

-- Names that rowLock locks in the user's own transaction.
CREATE TABLE :"schema".row_locks (
  name text COLLATE "C" PRIMARY KEY
);

-- The server's clock at this very moment, not at the start of the transaction.
CREATE FUNCTION :"schema".now_us() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The shard of a queue.
CREATE FUNCTION :"schema".shard_of(queue text) RETURNS integer LANGUAGE sql IMMUTABLE
AS $$ SELECT hashtext(queue) & 255 $$;

-- Purpose: locks the shard of a queue until the transaction ends. Queues that share it only wait for each other. The row of the shard
-- would do as well, but to lock it is to write it.
CREATE FUNCTION :"schema".lock_shard_of(queue text) RETURNS void LANGUAGE sql VOLATILE
AS $$ SELECT pg_advisory_xact_lock(':"schema".shards'::regclass::oid::integer, :"schema".shard_of(queue)) $$;

-- Returns: [id, writer, weight, permits, seq as text, µs left, µs of age, about].
CREATE FUNCTION :"schema".shown(e :"schema".entries, now bigint) RETURNS jsonb LANGUAGE sql STABLE
AS $$ SELECT jsonb_build_array(e.id, e.writer, e.weight, e.permits, e.seq::text, e.expires_at - now, now - e.appended_at, e.about) $$;

-- Purpose: where an entry stands. It is STABLE, so that all that it reads is of one moment.
-- Returns: [seq as text, µs left, µs of age, count ahead, weight ahead, nearest ahead, nearest writer ahead or true for the nearest,
-- seq of the first as text]; null if it is not there.
CREATE FUNCTION :"schema".place_of(the_queue text, the_seq bigint, now bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  self :"schema".entries;
  ahead record;
  nearest jsonb;
  writer jsonb;
BEGIN
  SELECT * INTO self FROM :"schema".entries WHERE queue = the_queue AND seq = the_seq;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT count(*) AS count, coalesce(sum(e.weight), 0) AS weight, max(e.seq) AS nearest,
    max(e.seq) FILTER (WHERE e.writer) AS writer, min(e.seq) AS first
    INTO ahead FROM :"schema".entries e WHERE e.queue = the_queue AND e.seq < the_seq;
  IF ahead.count > 0 THEN
    SELECT :"schema".shown(e, now) INTO nearest FROM :"schema".entries e WHERE e.queue = the_queue AND e.seq = ahead.nearest;
    IF ahead.writer = ahead.nearest THEN
      writer := 'true';
    ELSIF ahead.writer IS NOT NULL THEN
      SELECT :"schema".shown(e, now) INTO writer FROM :"schema".entries e WHERE e.queue = the_queue AND e.seq = ahead.writer;
    END IF;
  END IF;
  RETURN jsonb_build_array(self.seq::text, self.expires_at - now, now - self.appended_at,
    ahead.count, ahead.weight, nearest, writer, ahead.first::text);
END $$;

-- Purpose: tells those who may hold now that entries have left the queue, by the rules of grant.ts, and what is ahead of them.
-- Arguments: the first seq that has left, whether a writer has, and how much weight. The queue's shard must be locked.
CREATE FUNCTION :"schema".wake(the_queue text, gone_seq bigint, gone_writer boolean, gone_weight bigint, now bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  e :"schema".entries;
  ahead bigint := 0;
  ahead_weight bigint := 0;
  writers bigint := 0;
  most_permits bigint;
  grants boolean;
  told text;
BEGIN
  FOR e IN SELECT * FROM :"schema".entries WHERE queue = the_queue ORDER BY seq LOOP
    IF e.expires_at <= now THEN
      -- A renewal may have been faster: then it is there, and counts.
      DELETE FROM :"schema".entries WHERE queue = the_queue AND seq = e.seq AND expires_at <= now;
      IF FOUND THEN
        gone_seq := least(gone_seq, e.seq);
        gone_writer := gone_writer OR e.writer;
        gone_weight := gone_weight + e.weight;
        CONTINUE;
      END IF;
    END IF;
    grants := e.seq > gone_seq AND CASE
      WHEN e.permits IS NOT NULL
        THEN ahead_weight + e.weight <= e.permits AND ahead_weight + gone_weight + e.weight > e.permits
      WHEN e.writer THEN ahead = 0
      ELSE writers = 0 AND gone_writer
    END;
    IF grants THEN
      told := jsonb_build_array('wake', e.id, CASE
        WHEN ahead = 0 THEN jsonb_build_array(e.seq::text, e.expires_at - now, now - e.appended_at, 0, 0, NULL, NULL, NULL)
        ELSE :"schema".place_of(the_queue, e.seq, now)
      END)::text;
      IF octet_length(told) > 7900 THEN told := jsonb_build_array('wake', e.id)::text; END IF;
      PERFORM pg_notify(e.channel, told);
    END IF;
    ahead := ahead + 1;
    ahead_weight := ahead_weight + e.weight;
    IF e.writer THEN writers := writers + 1; END IF;
    IF e.permits IS NULL THEN
      EXIT WHEN writers > 0 OR NOT gone_writer;
    ELSE
      IF most_permits IS NULL THEN
        SELECT max(permits) INTO most_permits FROM :"schema".entries WHERE queue = the_queue;
      END IF;
      EXIT WHEN ahead_weight >= most_permits;
    END IF;
  END LOOP;
END $$;

-- Purpose: puts an entry at the tail of its queue, or finds it there again.
-- Arguments: queue, id, writer, weight, permits, ttl in µs, demand: refuse it unless it would hold, channel, about, again: it was
-- there before, and found itself gone.
-- Returns: a place, see place_of, and true behind it if it is not on disk yet and `flush` has to be called; or null if it was refused.
CREATE FUNCTION :"schema".append(the_queue text, the_id text, is_writer boolean, the_weight bigint, the_permits bigint,
  ttl bigint, demand boolean, channel text, about text, again boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  line record;
  pruned record;
  next_seq bigint;
  now bigint;
  granted boolean;
BEGIN
  -- A snapshot from before the wait for the shard would miss those who were faster.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'holdfast needs transactions that are READ COMMITTED, this one is %', current_setting('transaction_isolation')
      USING ERRCODE = 'invalid_transaction_state', HINT = 'ALTER ROLE … SET default_transaction_isolation = ''read committed''';
  END IF;
  IF again THEN DELETE FROM :"schema".evicted v WHERE v.id = the_id; END IF;
  -- 1. Lock the queue and take the next seq. Statements that follow see what was committed before that.
  PERFORM :"schema".lock_shard_of(the_queue);
  UPDATE :"schema".shards s SET seq = greatest(s.seq + 1, :"schema".now_us()) WHERE s.shard = :"schema".shard_of(the_queue)
    RETURNING s.seq INTO next_seq;
  IF next_seq IS NULL THEN
    -- Somebody has emptied the table.
    INSERT INTO :"schema".shards VALUES (:"schema".shard_of(the_queue), :"schema".now_us()) RETURNING seq INTO next_seq;
  END IF;
  now := :"schema".now_us();
  -- 2. Nobody is there: the common case, and nothing to look at.
  INSERT INTO :"schema".entries
    SELECT the_queue, next_seq, the_id, is_writer, the_weight, the_permits, now, now + ttl, channel, about
    WHERE NOT EXISTS (SELECT FROM :"schema".entries e WHERE e.queue = the_queue)
      AND (NOT demand OR the_permits IS NULL OR the_weight <= the_permits);
  IF FOUND THEN RETURN jsonb_build_array(next_seq::text, ttl, 0, 0, 0, NULL, NULL, NULL); END IF;
  -- 3. Look at the queue, after taking out what has expired.
  FOR attempt IN 1..2 LOOP
    SELECT count(*) AS count, coalesce(sum(e.weight), 0) AS weight, max(e.seq) FILTER (WHERE e.writer) AS writer,
      min(e.expires_at) AS next_expiry, max(e.seq) FILTER (WHERE e.id = the_id) AS own
      INTO line FROM :"schema".entries e WHERE e.queue = the_queue;
    EXIT WHEN attempt = 2 OR line.next_expiry IS NULL OR line.next_expiry > now;
    WITH gone AS (
      DELETE FROM :"schema".entries e WHERE e.queue = the_queue AND e.expires_at <= now RETURNING e.seq, e.writer, e.weight
    )
    SELECT min(gone.seq) AS seq, bool_or(gone.writer) AS writer, sum(gone.weight)::bigint AS weight INTO pruned FROM gone;
    IF pruned.seq IS NOT NULL THEN
      PERFORM :"schema".wake(the_queue, pruned.seq, pruned.writer, pruned.weight, now);
    END IF;
  END LOOP;
  -- 4. Find the entry again, refuse it, or put it at the tail.
  IF line.own IS NOT NULL THEN RETURN :"schema".place_of(the_queue, line.own, now); END IF;
  granted := CASE
    WHEN the_permits IS NOT NULL THEN line.weight + the_weight <= the_permits
    WHEN is_writer THEN line.count = 0
    ELSE line.writer IS NULL
  END;
  IF demand AND NOT granted THEN RETURN NULL; END IF;
  INSERT INTO :"schema".entries VALUES
    (the_queue, next_seq, the_id, is_writer, the_weight, the_permits, now, now + ttl, channel, about);
  IF granted THEN RETURN :"schema".place_of(the_queue, next_seq, now); END IF;
  -- Whoever has to wait anyway waits for the disk when it no longer holds up the shard.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN :"schema".place_of(the_queue, next_seq, now) || 'true'::jsonb;
END $$;

-- Purpose: appends many, in the order of the shards, so that two calls never wait for each other; within a queue, in call order.
-- Arguments: [{queue, id, writer, weight, permits, ttl, demand, channel, about, again}], as `append` takes them.
-- Returns: [what `append` gives].
CREATE FUNCTION :"schema".append_all(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  answers jsonb[] := array_fill(NULL::jsonb, ARRAY[jsonb_array_length(requests)]);
  durability text := current_setting('synchronous_commit');
  lasting boolean := false;
  r record;
BEGIN
  FOR r IN
    SELECT asked.*
    FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text, writer boolean, weight bigint, permits bigint,
      ttl bigint, demand boolean, channel text, about text, again boolean)) WITH ORDINALITY
      AS asked (queue, id, writer, weight, permits, ttl, demand, channel, about, again, number)
    ORDER BY :"schema".shard_of(asked.queue), asked.number
  LOOP
    answers[r.number] := :"schema".append(r.queue, r.id, r.writer, r.weight, r.permits, r.ttl, r.demand, r.channel, r.about, r.again);
    lasting := lasting OR coalesce(jsonb_array_length(answers[r.number]) = 8, false);
  END LOOP;
  IF lasting THEN PERFORM set_config('synchronous_commit', durability, true); END IF;
  RETURN to_jsonb(answers);
END $$;

-- Purpose: waits until all that was committed before is on disk, and wherever else this session's commits have to be.
-- Returns: [true].
CREATE FUNCTION :"schema".flush(requests jsonb) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
  -- A transaction that has written nothing waits for nothing.
  SELECT to_jsonb(array_fill(pg_logical_emit_message(true, 'holdfast', '') IS NOT NULL, ARRAY[jsonb_array_length(requests)]))
$$;

-- Purpose: takes an entry out and tells those who may hold now.
-- Arguments: queue, id, evict: somebody else than the owner does it, seq: only the entry that has it, or null.
-- Returns: true if it was there and had not expired.
CREATE FUNCTION :"schema".remove(the_queue text, the_id text, evict boolean, the_seq bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  gone record;
  now bigint;
BEGIN
  PERFORM :"schema".lock_shard_of(the_queue);
  now := :"schema".now_us();
  IF the_seq IS NULL THEN
    SELECT e.seq INTO the_seq FROM :"schema".entries e WHERE e.queue = the_queue AND e.id = the_id ORDER BY e.seq LIMIT 1;
  END IF;
  DELETE FROM :"schema".entries e WHERE e.queue = the_queue AND e.seq = the_seq AND e.id = the_id
    RETURNING e.writer, e.weight, e.expires_at, e.channel,
      EXISTS (SELECT FROM :"schema".entries other WHERE other.queue = the_queue AND other.seq <> the_seq) AS others INTO gone;
  IF NOT FOUND THEN RETURN false; END IF;
  IF gone.others THEN PERFORM :"schema".wake(the_queue, the_seq, gone.writer, gone.weight, now); END IF;
  IF NOT evict THEN
    -- A release that a crash undoes is one that its ttl ends: nobody has to wait for the disk. An eviction must not be undone.
    PERFORM set_config('synchronous_commit', 'off', true);
  ELSIF gone.expires_at > now THEN
    DELETE FROM :"schema".evicted v WHERE v.expires_at <= now;
    INSERT INTO :"schema".evicted VALUES (the_id, the_seq, the_queue, gone.expires_at, gone.channel) ON CONFLICT DO NOTHING;
    PERFORM pg_notify(gone.channel, jsonb_build_array('evicted', the_id, the_queue)::text);
  END IF;
  RETURN gone.expires_at > now;
END $$;

-- Purpose: removes many, in the order of the shards; within a queue, in call order.
-- Arguments: [{queue, id, evict, seq as text}], as `remove` takes them.
-- Returns: [what `remove` gives].
CREATE FUNCTION :"schema".remove_all(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  answers boolean[] := array_fill(false, ARRAY[jsonb_array_length(requests)]);
  durability text := current_setting('synchronous_commit');
  evictions boolean := false;
  r record;
BEGIN
  FOR r IN
    SELECT asked.*
    FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text, evict boolean, seq bigint)) WITH ORDINALITY
      AS asked (queue, id, evict, seq, number)
    ORDER BY :"schema".shard_of(asked.queue), asked.number
  LOOP
    answers[r.number] := :"schema".remove(r.queue, r.id, r.evict, r.seq);
    evictions := evictions OR r.evict;
  END LOOP;
  -- Those that need not wait for the disk travel with one that has to.
  IF evictions THEN PERFORM set_config('synchronous_commit', durability, true); END IF;
  RETURN to_jsonb(answers);
END $$;

-- Purpose: extends the lives of entries, never shortens one and never brings one back.
-- Arguments: [{queue, id, seq as text, ttl in µs}].
-- Returns: [µs left; or null if it is gone; or false if it was evicted].
CREATE FUNCTION :"schema".renew(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  answers jsonb;
BEGIN
  WITH asked AS (
    SELECT * FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text, seq bigint, ttl bigint)) WITH ORDINALITY
      AS asked (queue, id, seq, ttl, number)
  ), renewed AS (
    UPDATE :"schema".entries e SET expires_at = greatest(e.expires_at, :"schema".now_us() + once.ttl)
    -- An entry that is asked for twice is updated once, and both are answered.
    FROM (SELECT queue, id, seq, max(ttl) AS ttl FROM asked GROUP BY queue, id, seq) AS once
    WHERE e.queue = once.queue AND e.seq = once.seq AND e.id = once.id AND e.expires_at > :"schema".now_us()
    RETURNING e.queue, e.id, e.seq, e.expires_at - :"schema".now_us() AS left_us
  )
  SELECT coalesce(jsonb_agg(renewed.left_us ORDER BY asked.number), '[]') INTO answers
  FROM asked LEFT JOIN renewed USING (queue, id, seq);
  IF NOT answers @> 'null' THEN RETURN answers; END IF;
  -- A statement of its own: the one above may have waited for an eviction, and does not see what that has left.
  WITH told AS (
    DELETE FROM :"schema".evicted v USING (SELECT DISTINCT id, seq FROM jsonb_to_recordset(requests) AS (id text, seq bigint)) AS once
    WHERE v.id = once.id AND v.seq = once.seq RETURNING v.id, v.seq
  )
  SELECT jsonb_agg(CASE WHEN told.id IS NULL THEN answers -> (asked.number - 1)::int ELSE 'false' END ORDER BY asked.number)
  INTO answers
  FROM ROWS FROM (jsonb_to_recordset(requests) AS (id text, seq bigint)) WITH ORDINALITY AS asked (id, seq, number)
  LEFT JOIN told USING (id, seq);
  RETURN answers;
END $$;

-- Purpose: looks where entries stand, without taking anything out: what has expired still counts.
-- Arguments: [{queue, seq as text}].
-- Returns: [a place, see place_of; or null if it is not there].
CREATE FUNCTION :"schema".look(requests jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg(:"schema".place_of(asked.queue, asked.seq, :"schema".now_us()) ORDER BY asked.number), '[]')
  FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, seq bigint)) WITH ORDINALITY AS asked (queue, seq, number)
$$;

-- Purpose: what a client may have missed while nobody told it.
-- Arguments: [{channel}].
-- Returns: [its entries that were evicted: [[queue, id]]].
CREATE FUNCTION :"schema".evictions(requests jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg((
      SELECT coalesce(jsonb_agg(jsonb_build_array(v.queue, v.id)), '[]')
      FROM :"schema".evicted v WHERE v.channel = asked.channel AND v.expires_at > :"schema".now_us()
    ) ORDER BY asked.number), '[]')
  FROM ROWS FROM (jsonb_to_recordset(requests) AS (channel text)) WITH ORDINALITY AS asked (channel, number)
$$;

-- Purpose: takes out what has expired and nobody has met for a while, everywhere.
-- Returns: [how many entries].
CREATE FUNCTION :"schema".sweep(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  swept bigint;
BEGIN
  DELETE FROM :"schema".evicted v WHERE v.expires_at <= :"schema".now_us();
  DELETE FROM :"schema".entries e WHERE e.expires_at <= :"schema".now_us();
  GET DIAGNOSTICS swept = ROW_COUNT;
  RETURN jsonb_build_array(swept);
END $$;

-- Purpose: lists queues.
-- Arguments: [{queue}].
-- Returns: [the entries of each, first to last, see shown; also those that have expired].
CREATE FUNCTION :"schema".list(requests jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg((
      SELECT coalesce(jsonb_agg(:"schema".shown(e, now.us) ORDER BY e.seq), '[]')
      FROM :"schema".entries e, (SELECT :"schema".now_us() AS us) AS now
      WHERE e.queue = asked.queue
    ) ORDER BY asked.number), '[]')
  FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text)) WITH ORDINALITY AS asked (queue, number)
$$;

-- Purpose: names the queues that have live entries.
-- Arguments: [{prefix}].
-- Returns: [the names that start with each prefix].
CREATE FUNCTION :"schema".queues(requests jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg((
      SELECT coalesce(jsonb_agg(DISTINCT e.queue), '[]') FROM :"schema".entries e
      WHERE starts_with(e.queue, asked.prefix) AND e.expires_at > :"schema".now_us()
    ) ORDER BY asked.number), '[]')
  FROM ROWS FROM (jsonb_to_recordset(requests) AS (prefix text)) WITH ORDINALITY AS asked (prefix, number)
$$;
