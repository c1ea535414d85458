-- The queues of the postgres backend: its tables, and the functions that are its calls. Versions are applied in order, each once;
-- who applies them, and when, is left to migrate.ts.
--
-- Purpose: ordered queues of entries that live by the server's clock, told apart by their seq.
-- Keys: entries are found by (queue, seq) and by (queue, id); times are microseconds since 1970.
-- Arguments: every call takes one jsonb array of requests, so that calls that are made together travel together.
-- Returns: every call gives one jsonb array of answers, in the order of the requests.

-- version 1

-- One entry of one queue. `about` is a text for people that only clients read.
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
  PRIMARY KEY (queue, seq),
  UNIQUE (queue, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The highest seq that was given to a queue of each shard. Its row is the lock of these queues, and it is never removed: seq
-- grows over empty queues, crashes and a clock that was set back. Queues that share a row only wait for each other.
CREATE TABLE :"schema".shards (
  shard integer PRIMARY KEY,
  seq bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

INSERT INTO :"schema".shards SELECT shard, 0 FROM generate_series(0, 255) AS shard;

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

-- Returns: [id, writer, weight, permits, seq as text, µs left, µs of age, about].
CREATE FUNCTION :"schema".shown(e :"schema".entries, now bigint) RETURNS jsonb LANGUAGE sql STABLE
AS $$ SELECT jsonb_build_array(e.id, e.writer, e.weight, e.permits, e.seq::text, e.expires_at - now, now - e.appended_at, e.about) $$;

-- Purpose: where an entry stands. It is STABLE, so that all that it reads is of one moment.
-- Returns: [seq as text, µs left, µs of age, count ahead, weight ahead, nearest ahead, nearest writer ahead or true for the nearest,
-- seq of the first as text]; null if it is not there.
CREATE FUNCTION :"schema".place_of(the_queue text, the_id text, now bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  self :"schema".entries;
  ahead record;
  nearest jsonb;
  writer jsonb;
BEGIN
  SELECT * INTO self FROM :"schema".entries WHERE queue = the_queue AND id = the_id;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT count(*) AS count, coalesce(sum(e.weight), 0) AS weight, max(e.seq) AS nearest,
    max(e.seq) FILTER (WHERE e.writer) AS writer, min(e.seq) AS first
    INTO ahead FROM :"schema".entries e WHERE e.queue = the_queue AND e.seq < self.seq;
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
      told := jsonb_build_array('wake', e.id, :"schema".place_of(the_queue, e.id, now))::text;
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

-- Purpose: puts entries at the tails of their queues, or finds them there again.
-- Arguments: [{queue, id, writer, weight, permits, ttl in µs, demand: refuse it unless it would hold, channel, about,
-- again: it was there before, and found itself gone}].
-- Returns: [a place, see place_of; or null if it was refused].
CREATE FUNCTION :"schema".append(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  answers jsonb[] := array_fill(NULL::jsonb, ARRAY[jsonb_array_length(requests)]);
  r record;
  line record;
  pruned record;
  next_seq bigint;
  now bigint;
BEGIN
  -- A snapshot from before the wait for the shard would miss those who were faster.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'holdfast needs transactions that are READ COMMITTED, this one is %', current_setting('transaction_isolation')
      USING ERRCODE = 'invalid_transaction_state', HINT = 'ALTER ROLE … SET default_transaction_isolation = ''read committed''';
  END IF;
  -- In the order of the shards, so that two calls never wait for each other; within a queue, in call order.
  FOR r IN
    SELECT asked.*, :"schema".shard_of(asked.queue) AS shard
    FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text, writer boolean, weight bigint, permits bigint,
      ttl bigint, demand boolean, channel text, about text, again boolean)) WITH ORDINALITY
      AS asked (queue, id, writer, weight, permits, ttl, demand, channel, about, again, number)
    ORDER BY shard, asked.number
  LOOP
    -- 1. Lock the queue and take the next seq. Statements that follow see what was committed before that.
    UPDATE :"schema".shards s SET seq = greatest(s.seq + 1, :"schema".now_us()) WHERE s.shard = r.shard RETURNING s.seq INTO STRICT next_seq;
    now := :"schema".now_us();
    -- 2. Look at the queue, after taking out what has expired.
    FOR attempt IN 1..2 LOOP
      SELECT count(*) AS count, coalesce(sum(e.weight), 0) AS weight, max(e.seq) FILTER (WHERE e.writer) AS writer,
        min(e.expires_at) AS next_expiry, max(e.seq) FILTER (WHERE e.id = r.id) AS own
        INTO line FROM :"schema".entries e WHERE e.queue = r.queue;
      EXIT WHEN attempt = 2 OR line.next_expiry IS NULL OR line.next_expiry > now;
      WITH gone AS (
        DELETE FROM :"schema".entries e WHERE e.queue = r.queue AND e.expires_at <= now RETURNING e.seq, e.writer, e.weight
      )
      SELECT min(gone.seq) AS seq, bool_or(gone.writer) AS writer, sum(gone.weight)::bigint AS weight INTO pruned FROM gone;
      IF pruned.seq IS NOT NULL THEN
        PERFORM :"schema".wake(r.queue, pruned.seq, pruned.writer, pruned.weight, now);
      END IF;
    END LOOP;
    -- 3. Find the entry again, refuse it, or put it at the tail.
    IF line.own IS NOT NULL THEN
      answers[r.number] := :"schema".place_of(r.queue, r.id, now);
    ELSIF NOT r.demand OR (CASE
      WHEN r.permits IS NOT NULL THEN line.weight + r.weight <= r.permits
      WHEN r.writer THEN line.count = 0
      ELSE line.writer IS NULL
    END) THEN
      INSERT INTO :"schema".entries VALUES
        (r.queue, next_seq, r.id, r.writer, r.weight, r.permits, now, now + r.ttl, r.channel, r.about);
      IF r.again THEN DELETE FROM :"schema".evicted v WHERE v.id = r.id; END IF;
      answers[r.number] := CASE
        WHEN line.count = 0 THEN jsonb_build_array(next_seq::text, r.ttl, 0, 0, 0, NULL, NULL, NULL)
        ELSE :"schema".place_of(r.queue, r.id, now)
      END;
    END IF;
  END LOOP;
  RETURN to_jsonb(answers);
END $$;

-- Purpose: takes entries out and tells those who may hold now.
-- Arguments: [{queue, id, evict: somebody else than the owner does it, seq as text: only the entry that has it}].
-- Returns: [true if it was there and had not expired].
CREATE FUNCTION :"schema".remove(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  answers jsonb[] := array_fill('false'::jsonb, ARRAY[jsonb_array_length(requests)]);
  r record;
  gone :"schema".entries;
  now bigint;
  evictions boolean := false;
BEGIN
  FOR r IN
    SELECT asked.*, :"schema".shard_of(asked.queue) AS shard
    FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text, evict boolean, seq bigint)) WITH ORDINALITY
      AS asked (queue, id, evict, seq, number)
    ORDER BY shard, asked.number
  LOOP
    PERFORM FROM :"schema".shards s WHERE s.shard = r.shard FOR NO KEY UPDATE;
    now := :"schema".now_us();
    DELETE FROM :"schema".entries e WHERE e.queue = r.queue AND e.id = r.id AND (r.seq IS NULL OR e.seq = r.seq) RETURNING * INTO gone;
    CONTINUE WHEN NOT FOUND;
    IF gone.expires_at > now THEN
      answers[r.number] := 'true';
      IF r.evict THEN
        evictions := true;
        DELETE FROM :"schema".evicted v WHERE v.expires_at <= now;
        INSERT INTO :"schema".evicted VALUES (gone.id, gone.seq, gone.queue, gone.expires_at, gone.channel) ON CONFLICT DO NOTHING;
        PERFORM pg_notify(gone.channel, jsonb_build_array('evicted', gone.id, gone.queue)::text);
      END IF;
    END IF;
    PERFORM :"schema".wake(gone.queue, gone.seq, gone.writer, gone.weight, now);
  END LOOP;
  -- A release that a crash undoes is one that its ttl ends: nobody has to wait for the disk. An eviction must not be undone.
  IF NOT evictions THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  RETURN to_jsonb(answers);
END $$;

-- Purpose: extends the lives of entries, never shortens one and never brings one back.
-- Arguments: [{queue, id, seq as text, ttl in µs}].
-- Returns: [µs left; or null if it is gone; or false if it was evicted].
CREATE FUNCTION :"schema".renew(requests jsonb) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
  WITH asked AS (
    SELECT * FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text, seq bigint, ttl bigint)) WITH ORDINALITY
      AS asked (queue, id, seq, ttl, number)
  ), renewed AS (
    UPDATE :"schema".entries e SET expires_at = greatest(e.expires_at, :"schema".now_us() + asked.ttl)
    FROM asked
    WHERE e.queue = asked.queue AND e.id = asked.id AND e.seq = asked.seq AND e.expires_at > :"schema".now_us()
    RETURNING asked.number, e.expires_at - :"schema".now_us() AS left_us
  ), told AS (
    DELETE FROM :"schema".evicted v USING asked WHERE v.id = asked.id AND v.seq = asked.seq RETURNING asked.number
  )
  SELECT coalesce(jsonb_agg(CASE
      WHEN renewed.number IS NOT NULL THEN to_jsonb(renewed.left_us)
      WHEN told.number IS NOT NULL THEN 'false'::jsonb
    END ORDER BY asked.number), '[]')
  FROM asked LEFT JOIN renewed USING (number) LEFT JOIN told USING (number)
$$;

-- Purpose: looks where entries stand, without taking anything out: what has expired still counts.
-- Arguments: [{queue, id}].
-- Returns: [a place, see place_of; or null if it is not there].
CREATE FUNCTION :"schema".look(requests jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg(:"schema".place_of(asked.queue, asked.id, :"schema".now_us()) ORDER BY asked.number), '[]')
  FROM ROWS FROM (jsonb_to_recordset(requests) AS (queue text, id text)) WITH ORDINALITY AS asked (queue, id, number)
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
