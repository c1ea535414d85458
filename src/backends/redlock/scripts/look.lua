-- Purpose: shows who has a lock.
-- Keys: lock
-- Arguments: none
-- Returns: the milliseconds that are left (-1: it does not expire), " " and the value; "" if it is free

local function look(lock)
  local value = redis.call('GET', lock)
  if not value then return '' end
  return redis.call('PTTL', lock) .. ' ' .. value
end
