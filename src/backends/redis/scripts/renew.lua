-- Purpose: extends the life of one entry; never shortens it and never brings one back.
-- Keys: queue, entries, order, evicted
-- Arguments: id, seq, ttlMs
-- Returns: what is left of its life in ms; 0 if it is gone, -1 if somebody else took it out

local function renewInLine(queue, entries, order, id, seq, ttlMs)
  local value = redis.call('GET', queue)
  local record = value and string.byte(value) == 0 and redis.call('HGET', entries, id)
  if not record or string.match(record, '^%d+') ~= seq or not isLive(record) then return nil end
  local expiry = laterMs + ttlMs
  if expiry <= expiryOf(record) then return expiryOf(record) - laterMs end
  redis.call('HSET', entries, id, seq .. ' ' .. text(expiry) .. string.match(record, '^%d+ %d+( .*)$'))
  local line = open(queue, entries, order, value)
  if line:outlast(expiry, ttlMs) then line:save() end
  return expiry - laterMs
end

local function renew(queue, entries, order, evicted, id, seq, ttlMs)
  local left = prolongQuickly(queue, id, seq, ttlMs) or renewInLine(queue, entries, order, id, seq, ttlMs)
  if left then return left end
  remove(queue, entries, order, id, seq)
  if redis.call('HGET', evicted, id) ~= seq then return 0 end
  redis.call('HDEL', evicted, id)
  return -1
end
