-- Purpose: takes out what has expired at the front of a queue.
-- Keys: queue, order
-- Arguments: none
-- Returns: 1 if somebody is left, else 0

local function prune(queue, order)
  local fields = redis.call('HLEN', queue)
  if fields > 1 then
    local q = open(queue, order)
    mark(q)
    return settle(q) and 1 or 0
  end
  if fields == 1 and not isLive(redis.call('HVALS', queue)[1]) then
    redis.call('DEL', queue)
    return 0
  end
  return fields
end
