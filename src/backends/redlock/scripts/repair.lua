-- Purpose: gives a node that has missed it the lock of somebody who holds it on a majority, if it is free here.
-- Keys: lock
-- Arguments: id, seq, ttlMs, rest, fenced
-- Returns: "+" if it was free, else "-"

local function repair(lock, id, seq, ttlMs, rest, fenced)
  if not redis.call('SET', lock, id .. '\0t' .. seq .. '\0' .. rest, 'NX', 'PX', ttlMs) then return '-' end
  if fenced == '1' then raise(seq) end
  return '+'
end
