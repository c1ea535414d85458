-- Purpose: takes an entry out and tells those who are granted by it.
-- Keys: queue, order
-- Arguments: id, seq
-- Returns: 1 if it was there and had not expired, with that seq unless that is "", else 0

local function remove(queue, order, id, seq)
  local record = redis.call('HGET', queue, id)
  if not record or (seq ~= '' and string.match(record, '^%d+') ~= seq) then return 0 end
  if redis.call('HLEN', queue) == 1 then
    redis.call('DEL', queue)
  else
    local q = open(queue, order)
    mark(q)
    drop(q, id, record)
    settle(q)
  end
  return isLive(record) and 1 or 0
end
