-- Purpose: takes out what has expired at the front of a queue.
-- Keys: queue, entries, order
-- Arguments: none
-- Returns: 1 if somebody is left, else 0

local function prune(queue, entries, order)
  local value = redis.call('GET', queue)
  if not value then return 0 end
  local alone = string.match(value, '^[^%z]+%z(.*)$')
  if alone then return isLive(alone) and 1 or 0 end
  local q = open(queue, entries, order, value)
  mark(q)
  return settle(q) and 1 or 0
end
