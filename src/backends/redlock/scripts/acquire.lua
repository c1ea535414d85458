-- Purpose: takes a lock if it is free.
-- Keys: lock
-- Arguments: id, ttlMs, seq, rest, fenced
-- Returns: "+" if it was free and has this seq now; "+" and what the counter of this node is, if it was free but its seq is a
--   token (fenced is "1") that is not above the counter, or is more than a second above it; "=", the kind and the number
--   and " " and the milliseconds that are left, if it was ours already; "-", what is left of its life and " " and its value,
--   if it is somebody else's

local function acquire(lock, id, ttlMs, seq, rest, fenced)
  local state, counter = 't' .. seq, ''
  if fenced == '1' then
    local current = currentCounter()
    local ahead = tonumber(seq) - tonumber(current)
    if ahead <= 0 or ahead > 1000000 then
      state, counter = 'c' .. current, current
    end
  end
  local value = redis.call('SET', lock, id .. '\0' .. state .. '\0' .. rest, 'NX', 'GET', 'PX', ttlMs)
  if not value then
    if fenced == '1' and counter == '' then redis.call('SET', KEYS[1], seq) end
    return '+' .. counter
  end
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(value, id, '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. value
end
