-- Purpose: takes somebody else's entry out, tells its owner, and leaves word for its next renewal.
-- Keys: queue, entries, order, evicted
-- Arguments: id, seq
-- Returns: 1 if it was there and had not expired, with that seq unless that is "", else 0

local function evict(queue, entries, order, evicted, id, seq)
  local only, alone = onlyOf(redis.call('GET', queue) or '')
  local record = only == id and alone or redis.call('HGET', entries, id)
  if remove(queue, entries, order, id, seq) == 0 then return 0 end
  -- No longer than the entry would have lived: by then its owner has asked, or has died.
  local expiry = text(expiryOf(record))
  redis.call('HSET', evicted, id, string.match(record, '^%d+'))
  redis.call('PEXPIREAT', evicted, expiry, 'NX')
  redis.call('PEXPIREAT', evicted, expiry, 'GT')
  publish(channelOf(record), '\0' .. id .. '\0' .. queue)
  return 1
end
