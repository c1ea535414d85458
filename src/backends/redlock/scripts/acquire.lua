-- Purpose: takes a lock if it is free.
-- Keys: lock
-- Arguments: id, ttlMs, seq, rest
-- Returns: "+" and, where seq is "", what the counter of this node is, if it was free; "=", the kind and the number and
--   " " and the milliseconds that are left, if it was ours already; "-", what is left of its life and " " and its value, if
--   it is somebody else's

local function acquire(lock, id, ttlMs, seq, rest)
  local counter = seq == '' and currentCounter() or ''
  local state = seq == '' and 'c' .. counter or 't' .. seq
  local value = redis.call('SET', lock, id .. '\0' .. state .. '\0' .. rest, 'NX', 'GET', 'PX', ttlMs)
  if not value then return '+' .. counter end
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(value, id, '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. value
end
