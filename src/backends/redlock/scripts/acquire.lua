-- Purpose: takes a lock if it is free, with a token if that can be had.
-- Keys: lock
-- Arguments: value, ttlMs
-- Returns: "+" if it was free and has this value now; "+" and what the counter of this node is, if it was free but the token
--   in the value is not above the counter, or is more than a second above it: then it notes the counter instead; "+t" and
--   the token if it was free and the value left that to this node; and what taken says, if it was not free

local function acquire(lock, value, ttlMs)
  local seq = string.match(value, '^[^%z]*%zt(%d*)%z')
  local known = counter()
  if seq == '' then
    seq = string.format('%.0f', known + 1)
    value = string.gsub(value, '%zt%z', '\0t' .. seq .. '\0', 1)
    local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
    if was then return taken(lock, was, value) end
    raise(seq)
    return '+t' .. seq
  end
  local ahead = tonumber(seq) - tonumber(known)
  local fits = ahead > 0 and ahead <= 1000000
  if not fits then value = string.gsub(value, '%zt%d+%z', '\0c' .. known .. '\0', 1) end
  local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
  if was then return taken(lock, was, value) end
  if not fits then return '+' .. known end
  raise(seq)
  return '+'
end
