-- Purpose: extends the life of an entry that is alone in its queue, as most that are renewed are; never shortens it.
-- Keys: queue
-- Arguments: id, seq, ttlMs
-- Returns: what is left of its life in ms; false if it is not there, or not alone

local function keep(queue, id, seq, ttlMs)
  local value = redis.call('GET', queue)
  local own = id .. '\0' .. seq .. ' '
  if not value or string.sub(value, 1, #own) ~= own then return false end
  local life, rest = string.match(value, '^(%d+)(.*)$', #own + 1)
  local expiry = laterMs + ttlMs
  if expiry <= life + 0 then return life - laterMs end
  life = text(expiry)
  redis.call('SET', queue, own .. life .. rest, 'PXAT', life)
  return expiry - laterMs
end
