-- Purpose: gives a lock that is ours its token, unless this node knows of a larger one.
-- Keys: lock
-- Arguments: id, token
-- Returns: "+" and the milliseconds that are left if it has the token now; "=", the kind and the number that it has
--   instead if that is larger; "-" if it is not ours

local function store(lock, id, token)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, '')
  if not number then return '-' end
  if number ~= token or kind == 'c' then
    if tonumber(number) >= tonumber(token) then return '=' .. kind .. number end
    rewrite(lock, value, id, token)
  end
  return '+' .. redis.call('PTTL', lock)
end
