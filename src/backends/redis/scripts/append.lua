-- Purpose: puts an entry at the tail of a queue, or finds it there again, and says what is ahead.
-- Keys: queue, entries, order
-- Arguments: id, ttlMs, entry, atOnce
-- Returns: the seq alone if nothing is ahead and the whole ttl is left; else { seq, expiry, count, weight, nearest,
--   its record, nearest writer, its record }, where what does not exist is "" and a writer that is the nearest is "=";
--   false if it would have to wait, with atOnce "1"

local function standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
  if writer and writer == nearest then writer, writerRecord = '=', '' end
  return {
    text(seq),
    text(expiry),
    count,
    weight,
    nearest or '',
    nearestRecord or '',
    writer or '',
    writerRecord or '',
  }
end

local function grants(entry, count, weight, writer)
  local mode, own, permits = string.match(entry, '^(%a),(%d+),(%d*)')
  if permits ~= '' then return weight + own <= tonumber(permits) end
  if mode == 'r' then return not writer end
  return count == 0
end

-- The weight ahead of an entry in the middle. Far behind it is only a bound, but one that says as surely that it waits.
local function weightBefore(q, seq, count, permits)
  local weight = 0
  local near = redis.call('ZRANGEBYSCORE', q.order, '(0', '(' .. text(seq), 'LIMIT', 0, 128)
  for _, id in ipairs(near) do
    local record = redis.call('HGET', q.entries, id)
    if record then weight = weight + weightOf(record) end
  end
  if count <= #near then return weight end
  if seq <= q.heldTo then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', q.order, '(0', '(' .. text(seq), 'LIMIT', 128, -1)) do
      weight = weight + weightOf(redis.call('HGET', q.entries, id))
    end
    return weight
  end
  return math.max(weight + count - #near, permits)
end

local function standAgain(q, id, record)
  local seq, expiry = seqOf(record), expiryOf(record)
  mark(q)
  if q.counted then pruneHolders(q) end
  local nearest, nearestRecord = search(q, nearestBefore, seq)
  local writer, writerRecord = nearest, nearestRecord
  if q.mixed then writer, writerRecord = search(q, writerBefore, seq) end
  if q.changed then settle(q) end
  local count = countBefore(q, seq)
  local weight = q.counted and weightBefore(q, seq, count, permitsOf(record) or 0) or count
  return standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
end

-- Gives a queue of one entry an order.
local function unfold(queue, entries, order, only, record)
  local seq, permits = seqOf(record), permitsOf(record)
  local expiry = text(expiryOf(record))
  redis.call('DEL', entries, order)
  redis.call('HSET', entries, only, record)
  redis.call('PEXPIREAT', entries, expiry)
  redis.call('ZADD', order, text(seq), only)
  redis.call('PEXPIREAT', order, expiry)
  local q = { queue = queue, entries = entries, order = order, last = seq, mixed = false, counted = permits ~= nil }
  if permits then
    local weight = weightOf(record)
    local fits = weight <= permits
    q.total, q.held, q.heldTo = weight, fits and weight or 0, fits and seq or 0
  elseif modeOf(record) == 'r' then
    q.mixed = true
  end
  return q
end

-- The first reader joins: from now on writers are found by a search of their own.
local function mix(q)
  local writers = redis.call('ZRANGE', q.order, 0, -1, 'WITHSCORES')
  for i = 1, #writers, 2 do
    redis.call('ZADD', q.order, '-' .. text(tonumber(writers[i + 1])), '\0' .. writers[i])
  end
  q.mixed = true
end

local function putLast(q, id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
  local seq, expiry = nextSeq(q.last), laterMs + ttlMs
  local mode, own = string.match(entry, '^(%a),(%d+)')
  if mode == 'r' and not q.counted and not q.mixed then mix(q) end
  redis.call('ZADD', q.order, text(seq), id)
  if mode == 'w' and q.mixed then redis.call('ZADD', q.order, '-' .. text(seq), '\0' .. id) end
  q.last = seq
  if q.counted then
    -- Only those who hold without a gap are counted as holding: the next to be told is the first who does not.
    if q.held == q.total and grants(entry, count, weight, writer) then
      q.held, q.heldTo = q.held + own, seq
    end
    q.total = q.total + own
  end
  redis.call('HSET', q.entries, id, text(seq) .. ' ' .. text(expiry) .. ' ' .. entry)
  save(q)
  outlive(q, expiry)
  return standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
end

-- The rules of locks and of permits do not mix: neither could be told what the other leaves.
local function assertSameKind(counted, entry)
  if counted ~= (string.match(entry, '^%a,%d+,(%d*)') ~= '') then
    error('MIXED the queue has entries of the other kind', 0)
  end
end

local function appendToOne(queue, entries, order, id, ttlMs, entry, atOnce, only, record)
  assertSameKind(permitsOf(record) ~= nil, entry)
  local weight = weightOf(record)
  local writer = modeOf(record) == 'w' and only or nil
  if atOnce == '1' and not grants(entry, 1, weight, writer) then return false end
  local q = unfold(queue, entries, order, only, record)
  return putLast(q, id, ttlMs, entry, 1, weight, only, record, writer, writer and record)
end

local function append(queue, entries, order, id, ttlMs, entry, atOnce)
  local value = redis.call('GET', queue)
  if not value then return putAlone(queue, id, ttlMs, entry) end
  local only, alone = string.match(value, '^([^%z]+)%z(.*)$')
  if only then
    if not isLive(alone) then
      redis.call('DEL', queue)
      return putAlone(queue, id, ttlMs, entry)
    end
    if only == id then return standing(seqOf(alone), expiryOf(alone), 0, 0) end
    return appendToOne(queue, entries, order, id, ttlMs, entry, atOnce, only, alone)
  end

  local q = open(queue, entries, order, value)
  q.asking = id
  local record = redis.call('HGET', entries, id)
  if record and isLive(record) then return standAgain(q, id, record) end
  assertSameKind(q.counted, entry)
  mark(q)
  if record then drop(q, id, record) end
  local nearest, nearestRecord = search(q, final)
  local writer, writerRecord = nearest, nearestRecord
  if q.mixed then writer, writerRecord = search(q, writerBefore, q.last + 1) end
  if q.counted and nearest and not grants(entry, 0, q.total, nil) then
    pruneHolders(q)
    tellOfRoom(q)
    nearest, nearestRecord = search(q, final)
  end
  if (q.changed or not nearest) and not settle(q) then return putAlone(queue, id, ttlMs, entry) end
  local count = redis.call('HLEN', entries)
  local weight = q.counted and q.total or count
  if atOnce == '1' and not grants(entry, count, weight, writer) then return false end
  return putLast(q, id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
