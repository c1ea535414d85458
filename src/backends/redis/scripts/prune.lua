-- Purpose: takes out what has expired at the front of a queue.
-- Keys: queue, entries, order
-- Arguments: none
-- Returns: 1 if somebody is left, else 0

local function prune(queue, entries, order)
  local value = redis.call('GET', queue)
  if not value then return 0 end
  if string.byte(value) ~= 0 then return 1 end
  local line = open(queue, entries, order, value)
  line:mark()
  return line:settle() and 1 or 0
end
