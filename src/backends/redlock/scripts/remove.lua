-- Purpose: frees a lock that is ours and tells those who wait, if that is wanted.
-- Keys: lock
-- Arguments: id, seq, tell
-- Returns: "+" if it was there, with that seq unless that is "", else "-"

local function remove(lock, id, seq, tell)
  if not own(redis.call('GET', lock), id, seq) then return '-' end
  redis.call('DEL', lock)
  if tell == '1' then redis.call('PUBLISH', channelOf(lock), id) end
  return '+'
end
