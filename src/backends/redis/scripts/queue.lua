-- Purpose: a queue with more than one entry, and those whom a change of it has granted.
-- Keys: none of its own
-- Arguments: none of its own
-- Returns: nothing, it only defines
--
-- The queue of one entry is a string: its id, "\0" and its record. A second entry makes it "\0" and what is known of the
-- whole queue; then the key "entries" has the records by id, and "order" is a sorted set: each id by its seq and, once a reader
-- has joined, each writer a second time, as "\0" and its id by its negative seq. All of them expire with the entry that
-- lives longest.

local function seqOf(record)
  return tonumber(string.match(record, '^%d+'))
end

local function modeOf(record)
  return string.match(record, '^%d+ %d+ (%a)')
end

local function weightOf(record)
  return tonumber(string.match(record, '^%d+ %d+ %a,(%d+)'))
end

-- nil for a lock
local function permitsOf(record)
  return tonumber(string.match(record, '^%d+ %d+ %a,%d+,(%d+)'))
end

local function publish(record, message)
  local channel = string.match(record, '^%d+ %d+ %a,%d+,%d*,([^%z]*)')
  if channel ~= '' then redis.call('PUBLISH', channel, message) end
end

-- What is known of a queue with an order: the last seq; whether readers have joined; for permits the weight of all, the
-- weight of those who hold and the seq of the last of them.
local function open(queue, entries, order, known)
  local last, mixed, total, held, heldTo = string.match(known, '^%z(%d+) (%d) ?(%d*) ?(%d*) ?(%d*)$')
  return {
    queue = queue,
    entries = entries,
    order = order,
    last = tonumber(last),
    mixed = mixed == '1',
    counted = total ~= '',
    total = tonumber(total),
    held = tonumber(held),
    heldTo = tonumber(heldTo),
  }
end

local function known(q)
  local line = '\0' .. text(q.last) .. (q.mixed and ' 1' or ' 0')
  if not q.counted then return line end
  return line .. ' ' .. text(q.total) .. ' ' .. text(q.held) .. ' ' .. text(q.heldTo)
end

local function save(q)
  redis.call('SET', q.queue, known(q), 'KEEPTTL')
end

-- Lets all keys of a queue live as long as its entries.
local function outlive(q, expiry)
  if redis.call('PEXPIREAT', q.queue, text(expiry), 'GT') == 0 then return end
  redis.call('PEXPIREAT', q.entries, text(expiry))
  redis.call('PEXPIREAT', q.order, text(expiry))
end

local function nearestBefore(q, seq)
  return redis.call('ZREVRANGEBYSCORE', q.order, '(' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
end

local function writerBefore(q, seq)
  local twin = redis.call('ZRANGEBYSCORE', q.order, '(-' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
  return twin and string.sub(twin, 2)
end

local function firstWriter(q)
  local found = redis.call('ZREVRANGEBYSCORE', q.order, '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if found[1] then return string.sub(found[1], 2), -tonumber(found[2]) end
  return nil
end

local function countBefore(q, seq)
  return redis.call('ZCOUNT', q.order, '(0', '(' .. text(seq))
end

-- A server that evicts keys may have taken the order alone: the records have all of it.
local function restore(q)
  local fields = redis.call('HGETALL', q.entries)
  for i = 1, #fields, 2 do
    local id, record = fields[i], fields[i + 1]
    redis.call('ZADD', q.order, text(seqOf(record)), id)
    if q.mixed and modeOf(record) == 'w' then
      redis.call('ZADD', q.order, '-' .. text(seqOf(record)), '\0' .. id)
    end
  end
  if #fields > 0 then redis.call('PEXPIRE', q.order, redis.call('PTTL', q.queue)) end
end

local function headSeq(q)
  local head = redis.call('ZRANGEBYSCORE', q.order, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(head[2])
end

-- Remembers who may hold before anything changes: the first, and all before the first writer.
local function mark(q)
  q.head = headSeq(q)
  if not q.head then
    restore(q)
    q.head = headSeq(q)
  end
  if q.mixed then
    local _, seq = firstWriter(q)
    q.writer = seq
  else
    q.writer = q.head
  end
end

local function drop(q, id, record)
  redis.call('HDEL', q.entries, id)
  redis.call('ZREM', q.order, id)
  q.changed = true
  if q.mixed then redis.call('ZREM', q.order, '\0' .. id) end
  if q.counted and record then
    local weight = weightOf(record)
    q.total = q.total - weight
    if seqOf(record) <= q.heldTo then q.held = q.held - weight end
  end
end

-- The record of an entry; one that has expired is taken out.
local function live(q, id)
  local record = redis.call('HGET', q.entries, id)
  if record and isLive(record) then return record end
  drop(q, id, record)
  return nil
end

-- The live entry that a search finds, after taking out those it finds that have expired.
local function search(q, find, seq)
  while true do
    local id = find(q, seq)
    if not id then return nil end
    local record = live(q, id)
    if record then return id, record end
  end
end

local function first(q)
  return redis.call('ZRANGEBYSCORE', q.order, '(0', '+inf', 'LIMIT', 0, 1)[1]
end

local function final(q)
  return redis.call('ZREVRANGEBYSCORE', q.order, '+inf', '(0', 'LIMIT', 0, 1)[1]
end

-- Tells a waiter that it holds: its id and seq and, where others are ahead, what is.
local function tell(q, id, record, count, weight, nearest, nearestRecord)
  if id == q.asking then return end
  local message = id .. '\0' .. string.match(record, '^%d+')
  if count and count > 0 then
    message = table.concat({ message, text(laterMs), text(count), text(weight), nearest, nearestRecord }, '\0')
  end
  publish(record, message)
end

-- Readers are granted together: those between the first writer of before and the first one now.
local function tellReaders(q)
  local before = q.writer
  if not before then return end
  local limit = '+inf'
  if search(q, firstWriter) then
    local _, seq = firstWriter(q)
    if seq == before then return end
    limit = '(' .. text(seq)
  end
  local run = redis.call('ZRANGEBYSCORE', q.order, '(' .. text(before), limit)
  local count = countBefore(q, before)
  local nearest = nearestBefore(q, before)
  local nearestRecord = nearest and redis.call('HGET', q.entries, nearest)
  for _, id in ipairs(run) do
    local record = live(q, id)
    if record then
      tell(q, id, record, count, count, nearest, nearestRecord)
      count, nearest, nearestRecord = count + 1, id, record
    end
  end
end

-- Permits are granted in order, for as long as the next one fits.
local function tellOfRoom(q)
  while true do
    local id = redis.call('ZRANGEBYSCORE', q.order, '(' .. text(q.heldTo), '+inf', 'LIMIT', 0, 1)[1]
    if not id then break end
    local record = live(q, id)
    if record then
      local seq, weight = seqOf(record), weightOf(record)
      if q.held + weight > (permitsOf(record) or 0) then break end
      local nearest = nearestBefore(q, seq)
      local nearestRecord = nearest and redis.call('HGET', q.entries, nearest)
      tell(q, id, record, countBefore(q, seq), q.held, nearest, nearestRecord)
      q.held, q.heldTo = q.held + weight, seq
    end
  end
  save(q)
end

-- Takes out those who hold permits and have expired.
local function pruneHolders(q)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', q.order, '(0', text(q.heldTo))) do live(q, id) end
end

-- After a change: tells those who are granted by it. False if nobody is left, and then nothing is.
local function settle(q)
  local id, record = search(q, first)
  if not id then
    redis.call('DEL', q.queue, q.entries, q.order)
    return false
  end
  if q.counted then
    tellOfRoom(q)
  elseif modeOf(record) == 'r' then
    tellReaders(q)
  elseif seqOf(record) ~= q.head then
    tell(q, id, record)
  end
  return true
end
