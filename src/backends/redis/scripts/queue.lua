-- Purpose: a queue with more than one entry, and those whom a change of it has granted.
-- Keys: none of its own
-- Arguments: none of its own
-- Returns: nothing, it only defines
--
-- The queue of one entry is a string: its id, "\0" and its record. A second entry makes it a line:
-- "\0<last seq> <until when its keys live> <kind>", for permits also " <weight of all> <weight of those who hold>
-- <seq of the last of them>", then "\0" and the id that joined last. The kind is w while there are only writers, m once a
-- reader has joined, c for permits. The key "entries" has the records by id, and "order" is a sorted set: each id by its seq
-- and, in a line of kind m, each writer a second time, as "\0" and its id by its negative seq.

local function seqOf(record)
  return tonumber(string.match(record, '^%d+'))
end

local function expiryOf(record)
  return tonumber(string.match(record, '^%d+ (%d+)'))
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

local function channelOf(record)
  return string.match(record, '^%d+ %d+ %a,%d+,%d*,([^%z]*)')
end

-- The id and the record of an entry that has a queue to itself; nil for a line.
local function onlyOf(value)
  local id, record = string.match(value, '^([^%z]+)%z(.*)$')
  if not id then return nil end
  local seq, ttlMs, rest = string.match(record, '^(%d+) %+(%d+)(.*)$')
  if seq then record = seq .. ' ' .. text(lifeOf(seq, ttlMs)) .. rest end
  return id, record
end

local Line = {}
Line.__index = Line

local function open(queue, entries, order, known)
  local last, lasts, kind, total, held, heldTo, tail =
    string.match(known, '^%z(%d+) (%d+) (%a) ?(%d*) ?(%d*) ?(%d*)%z(.*)$')
  return setmetatable({
    queue = queue,
    entries = entries,
    order = order,
    last = tonumber(last),
    lasts = tonumber(lasts),
    mixed = kind == 'm',
    counted = kind == 'c',
    total = tonumber(total),
    held = tonumber(held),
    heldTo = tonumber(heldTo),
    tail = tail,
  }, Line)
end

function Line:known()
  local line = '\0' .. text(self.last) .. ' ' .. text(self.lasts)
  if self.counted then
    line = line .. ' c ' .. text(self.total) .. ' ' .. text(self.held) .. ' ' .. text(self.heldTo)
  else
    line = line .. (self.mixed and ' m' or ' w')
  end
  return line .. '\0' .. self.tail
end

function Line:save()
  redis.call('SET', self.queue, self:known(), 'PXAT', text(self.lasts))
end

-- Lets all keys live at least as long as an entry; to be saved by the caller.
function Line:outlast(expiry, ttlMs)
  if expiry <= self.lasts then return false end
  self.lasts = expiry + math.floor(ttlMs / spareShare)
  redis.call('PEXPIREAT', self.entries, text(self.lasts))
  redis.call('PEXPIREAT', self.order, text(self.lasts))
  return true
end

function Line:nearestBefore(seq)
  return redis.call('ZREVRANGEBYSCORE', self.order, '(' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
end

function Line:writerBefore(seq)
  local twin = redis.call('ZRANGEBYSCORE', self.order, '(-' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
  return twin and string.sub(twin, 2)
end

function Line:firstWriter()
  local found = redis.call('ZREVRANGEBYSCORE', self.order, '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if found[1] then return string.sub(found[1], 2), -tonumber(found[2]) end
  return nil
end

function Line:first()
  return redis.call('ZRANGEBYSCORE', self.order, '(0', '+inf', 'LIMIT', 0, 1)[1]
end

-- Twins come first, so the last of the whole set is an entry.
function Line:final()
  return redis.call('ZRANGE', self.order, -1, -1)[1]
end

function Line:countBefore(seq)
  return redis.call('ZCOUNT', self.order, '(0', '(' .. text(seq))
end

-- A server that evicts keys may have taken the order alone: the records have all of it.
function Line:restore()
  local fields = redis.call('HGETALL', self.entries)
  for i = 1, #fields, 2 do
    local id, record = fields[i], fields[i + 1]
    redis.call('ZADD', self.order, text(seqOf(record)), id)
    if self.mixed and modeOf(record) == 'w' then
      redis.call('ZADD', self.order, '-' .. text(seqOf(record)), '\0' .. id)
    end
  end
  if #fields > 0 then redis.call('PEXPIREAT', self.order, text(self.lasts)) end
end

function Line:headSeq()
  local head = redis.call('ZRANGEBYSCORE', self.order, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(head[2])
end

-- Remembers who may hold before anything changes: the first, and all before the first writer.
function Line:mark()
  self.head = self:headSeq()
  if not self.head then
    self:restore()
    self.head = self:headSeq()
  end
  if self.mixed then
    local _, seq = self:firstWriter()
    self.writer = seq
  else
    self.writer = self.head
  end
end

function Line:drop(id, record)
  redis.call('HDEL', self.entries, id)
  redis.call('ZREM', self.order, id)
  self.changed = true
  if self.mixed then redis.call('ZREM', self.order, '\0' .. id) end
  if self.counted and record then
    local weight = weightOf(record)
    self.total = self.total - weight
    if seqOf(record) <= self.heldTo then self.held = self.held - weight end
  end
end

-- The record of an entry; one that has expired is taken out.
function Line:live(id)
  local record = redis.call('HGET', self.entries, id)
  if record and isLive(record) then return record end
  self:drop(id, record)
  return nil
end

-- The live entry that a search finds, after taking out those it finds that have expired.
function Line:search(find, seq)
  while true do
    local id = find(self, seq)
    if not id then return nil end
    local record = self:live(id)
    if record then return id, record end
  end
end

-- Tells a waiter that it holds: its id and seq and, where others are ahead, what is.
function Line:tell(id, record, count, weight, nearest, nearestRecord)
  if id == self.asking then return end
  local message = id .. '\0' .. string.match(record, '^%d+')
  if count and count > 0 then
    message = table.concat({ message, text(laterMs), text(count), text(weight), nearest, nearestRecord }, '\0')
  end
  publish(channelOf(record), message)
end

-- Readers are granted together: those between the first writer of before and the first one now.
function Line:tellReaders()
  local before = self.writer
  if not before then return end
  local limit = '+inf'
  if self:search(self.firstWriter) then
    local _, seq = self:firstWriter()
    if seq == before then return end
    limit = '(' .. text(seq)
  end
  local run = redis.call('ZRANGEBYSCORE', self.order, '(' .. text(before), limit)
  local count = self:countBefore(before)
  local nearest = self:nearestBefore(before)
  local nearestRecord = nearest and redis.call('HGET', self.entries, nearest)
  for _, id in ipairs(run) do
    local record = self:live(id)
    if record then
      self:tell(id, record, count, count, nearest, nearestRecord)
      count, nearest, nearestRecord = count + 1, id, record
    end
  end
end

-- Permits are granted in order, for as long as the next one fits.
function Line:tellOfRoom()
  while true do
    local id = redis.call('ZRANGEBYSCORE', self.order, '(' .. text(self.heldTo), '+inf', 'LIMIT', 0, 1)[1]
    if not id then break end
    local record = self:live(id)
    if record then
      local seq, weight = seqOf(record), weightOf(record)
      if self.held + weight > (permitsOf(record) or 0) then break end
      local nearest = self:nearestBefore(seq)
      local nearestRecord = nearest and redis.call('HGET', self.entries, nearest)
      self:tell(id, record, self:countBefore(seq), self.held, nearest, nearestRecord)
      self.held, self.heldTo = self.held + weight, seq
    end
  end
  self:save()
end

-- Takes out those who hold permits and have expired.
function Line:pruneHolders()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', self.order, '(0', text(self.heldTo))) do self:live(id) end
end

-- After a change: tells those who are granted by it. False if nobody is left, and then nothing is.
function Line:settle()
  local id, record = self:search(self.first)
  if not id then
    redis.call('DEL', self.queue, self.entries, self.order)
    return false
  end
  if self.counted then
    self:tellOfRoom()
  elseif modeOf(record) == 'r' then
    self:tellReaders()
  elseif seqOf(record) ~= self.head then
    self:tell(id, record)
  end
  return true
end
