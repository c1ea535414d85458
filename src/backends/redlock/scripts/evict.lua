-- Purpose: frees a lock that is somebody else's, tells those who wait, and leaves word for its owner until it would have
--   expired.
-- Keys: lock, evicted
-- Arguments: id, seq
-- Returns: "+" if it was there, with that seq unless that is "", else "-"

local function evict(lock, evicted, id, seq)
  if not own(redis.call('GET', lock), id, seq) then return '-' end
  local leftMs = redis.call('PTTL', lock)
  if leftMs > 0 then redis.call('SET', evicted, '1', 'PX', leftMs) end
  redis.call('DEL', lock)
  redis.call('PUBLISH', channelOf(lock), id)
  return '+'
end
