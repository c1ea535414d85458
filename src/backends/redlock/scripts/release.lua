-- Purpose: frees a lock that should have this value, and tells those who wait.
-- Keys: lock
-- Arguments: value
-- Returns: "+" if it was there, with the same owner and seq, else "-"

local function release(lock, value)
  if redis.call('GET', lock) ~= value then
    local id, seq = string.match(value, '^([^%z]*)%zt(%d+)%z')
    return remove(lock, id, seq, '1')
  end
  redis.call('DEL', lock)
  redis.call('PUBLISH', channelOf(lock), string.match(value, '^[^%z]*'))
  return '+'
end
