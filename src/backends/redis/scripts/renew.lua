-- Purpose: extends the life of one entry; never shortens it and never brings one back.
-- Keys: queue, order, evicted
-- Arguments: id, seq, ttlMs
-- Returns: what is left of its life in ms; 0 if it is gone, -1 if somebody else took it out

local function renew(queue, order, evicted, id, seq, ttlMs)
  local record = redis.call('HGET', queue, id)
  if not record or string.match(record, '^%d+') ~= seq then
    if redis.call('HGET', evicted, id) ~= seq then return 0 end
    redis.call('HDEL', evicted, id)
    return -1
  end
  if not isLive(record) then
    remove(queue, order, id, seq)
    return 0
  end
  local expiry = laterMs + ttlMs
  if expiry <= expiryOf(record) then return expiryOf(record) - laterMs end
  redis.call('HSET', queue, id, seq .. ' ' .. text(expiry) .. string.match(record, '^%d+ %d+( .*)$'))
  if redis.call('PEXPIREAT', queue, text(expiry), 'GT') == 1 then
    redis.call('PEXPIREAT', order, text(expiry))
  end
  return expiry - laterMs
end
