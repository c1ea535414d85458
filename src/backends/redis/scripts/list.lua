-- Purpose: shows a queue without changing it.
-- Keys: queue
-- Arguments: none
-- Returns: fields and values of the queue, in no order: ids and records, and what is known of the whole

local function list(queue)
  return redis.call('HGETALL', queue)
end
