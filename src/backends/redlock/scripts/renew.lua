-- Purpose: extends a lock that is ours; never shortens it, never brings it back.
-- Keys: lock, evicted
-- Arguments: id, seq, ttlMs
-- Returns: "+" and the milliseconds that are left; "0" if nobody has it, "x" if it was evicted, "-" if somebody else has it

local function renew(lock, evicted, id, seq, ttlMs)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, seq)
  if not number then
    if redis.call('DEL', evicted) == 1 then return 'x' end
    return value and '-' or '0'
  end
  if kind == 'c' then rewrite(lock, value, id, seq) end
  if redis.call('PEXPIRE', lock, ttlMs, 'GT') == 1 then return '+' .. ttlMs end
  return '+' .. redis.call('PTTL', lock)
end
