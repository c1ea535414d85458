-- Purpose: shows a queue without changing it.
-- Keys: queue, entries
-- Arguments: none
-- Returns: ids and their records, in no order

local function list(queue, entries)
  local only, record = onlyOf(redis.call('GET', queue) or '')
  if only then return { only, record } end
  return redis.call('HGETALL', entries)
end
