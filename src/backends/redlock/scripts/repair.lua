-- Purpose: gives a node that has missed it the lock of somebody who holds it on a majority, if it is free here.
-- Keys: lock
-- Arguments: id, seq, ttlMs, rest, fenced
-- Returns: 1 if it was free, else 0

local function repair(lock, id, seq, ttlMs, rest, fenced)
  if not redis.call('SET', lock, id .. '\0t' .. seq .. '\0' .. rest, 'NX', 'PX', ttlMs) then return 0 end
  if fenced == '1' then raise(seq) end
  return 1
end
