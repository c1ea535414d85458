-- Purpose: puts an entry at the tail of a queue, or finds it there again, and says what is ahead.
-- Keys: queue, entries, order
-- Arguments: id, ttlMs, atOnce, shape, more
-- Returns: the seq alone if nothing is ahead and the whole ttl is left; else { seq, expiry, count, weight, nearest,
--   its record, nearest writer, its record }, where what does not exist is "" and a writer that is the nearest is "=";
--   false if it would have to wait, with atOnce "1"
--
-- The shape is "<mode>,<weight>,<permits>,". More is nothing, or "\0" and the metadata.

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
function Line:weightBefore(seq, count, permits)
  local weight = 0
  local near = redis.call('ZRANGEBYSCORE', self.order, '(0', '(' .. text(seq), 'LIMIT', 0, 128)
  for _, id in ipairs(near) do
    local record = redis.call('HGET', self.entries, id)
    if record then weight = weight + weightOf(record) end
  end
  if count <= #near then return weight end
  if seq <= self.heldTo then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', self.order, '(0', '(' .. text(seq), 'LIMIT', 128, -1)) do
      weight = weight + weightOf(redis.call('HGET', self.entries, id))
    end
    return weight
  end
  return math.max(weight + count - #near, permits)
end

function Line:standAgain(record)
  local seq, expiry = seqOf(record), expiryOf(record)
  self:mark()
  if self.counted then self:pruneHolders() end
  local nearest, nearestRecord = self:search(self.nearestBefore, seq)
  local writer, writerRecord = nearest, nearestRecord
  if self.mixed then writer, writerRecord = self:search(self.writerBefore, seq) end
  if self.changed then self:settle() end
  local count = self:countBefore(seq)
  local weight = self.counted and self:weightBefore(seq, count, permitsOf(record) or 0) or count
  return standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
end

-- Makes a queue of one entry a line.
local function unfold(queue, entries, order, only, record)
  local seq, permits = seqOf(record), permitsOf(record)
  redis.call('DEL', entries, order)
  redis.call('HSET', entries, only, record)
  redis.call('ZADD', order, text(seq), only)
  local line = { queue = queue, entries = entries, order = order, last = seq, lasts = 0, tail = only }
  if permits then
    local weight = weightOf(record)
    local fits = weight <= permits
    line.counted, line.total, line.held, line.heldTo = true, weight, fits and weight or 0, fits and seq or 0
  else
    line.mixed = modeOf(record) == 'r'
  end
  return setmetatable(line, Line)
end

-- The first reader joins: from now on writers are found by a search of their own.
function Line:mix()
  local writers = redis.call('ZRANGE', self.order, 0, -1, 'WITHSCORES')
  for i = 1, #writers, 2 do
    redis.call('ZADD', self.order, '-' .. text(tonumber(writers[i + 1])), '\0' .. writers[i])
  end
  self.mixed = true
end

function Line:putLast(id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
  local expiry = laterMs + ttlMs
  lastGiven = math.max(lastGiven, self.last) + 1
  local seq = lastGiven
  local mode, own = string.match(entry, '^(%a),(%d+)')
  if mode == 'r' and not self.counted and not self.mixed then self:mix() end
  redis.call('ZADD', self.order, text(seq), id)
  if mode == 'w' and self.mixed then redis.call('ZADD', self.order, '-' .. text(seq), '\0' .. id) end
  self.last, self.tail = seq, id
  if self.counted then
    -- Only those who hold without a gap are counted as holding: the next to be told is the first who does not.
    if self.held == self.total and grants(entry, count, weight, writer) then
      self.held, self.heldTo = self.held + own, seq
    end
    self.total = self.total + own
  end
  redis.call('HSET', self.entries, id, text(seq) .. ' ' .. text(expiry) .. ' ' .. entry)
  self:outlast(math.max(expiry, nearestRecord and expiryOf(nearestRecord) or 0), ttlMs)
  self:save()
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
  local line = unfold(queue, entries, order, only, record)
  return line:putLast(id, ttlMs, entry, 1, weight, only, record, writer, writer and record)
end

local function append(queue, entries, order, id, ttlMs, atOnce, shape, more)
  local entry = shape .. ARGV[2] .. more
  local value = redis.call('GET', queue)
  local only, alone = onlyOf(value)
  if only == id then return standing(seqOf(alone), expiryOf(alone), 0, 0) end
  if only then return appendToOne(queue, entries, order, id, ttlMs, entry, atOnce, only, alone) end

  local line = open(queue, entries, order, value)
  line.asking = id
  local record = redis.call('HGET', entries, id)
  if record and isLive(record) then return line:standAgain(record) end
  assertSameKind(line.counted, entry)
  line:mark()
  if record then line:drop(id, record) end
  local nearest, nearestRecord = line:search(line.final)
  local writer, writerRecord = nearest, nearestRecord
  if line.mixed then writer, writerRecord = line:search(line.writerBefore, line.last + 1) end
  if line.counted and nearest and not grants(entry, 0, line.total, nil) then
    line:pruneHolders()
    line:tellOfRoom()
    nearest, nearestRecord = line:search(line.final)
  end
  if (line.changed or not nearest) and not line:settle() then
    return joinQuickly(queue, entries, order, id, ttlMs, atOnce, shape, more)
  end
  local count = redis.call('HLEN', entries)
  local weight = line.counted and line.total or count
  if atOnce == '1' and not grants(entry, count, weight, writer) then return false end
  return line:putLast(id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
