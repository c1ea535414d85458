-- Purpose: takes a lock if it is free, without a token.
-- Keys: lock
-- Arguments: value, ttlMs
-- Returns: "+" if it was free and has this value now, else what taken says

local function take(lock, value, ttlMs)
  local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
  if was then return taken(lock, was, value) end
  return '+'
end
