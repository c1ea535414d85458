-- Purpose: extends the life of one entry; never shortens it and never brings one back.
-- Keys: queue, entries, order, evicted
-- Arguments: id, seq, ttlMs
-- Returns: what is left of its life in ms; 0 if it is gone, -1 if somebody else took it out

local function renew(queue, entries, order, evicted, id, seq, ttlMs)
  local value = redis.call('GET', queue)
  local record = value and string.byte(value) == 0 and redis.call('HGET', entries, id)
  if record and string.match(record, '^%d+') == seq and isLive(record) then
    -- Its keys have to live longer; the rest can then be done quickly.
    local line = open(queue, entries, order, value)
    if line:outlast(laterMs + ttlMs, ttlMs) then line:save() end
  end
  local left = prolongQuickly(queue, entries, id, seq, ttlMs)
  if left then return left end
  remove(queue, entries, order, id, seq)
  if redis.call('HGET', evicted, id) ~= seq then return 0 end
  redis.call('HDEL', evicted, id)
  return -1
end
