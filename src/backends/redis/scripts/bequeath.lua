-- Purpose: takes an entry out and tells those who are granted by it, but for the heir, which has the lock from its own client already.
-- Keys: queue, entries, order
-- Arguments: id, seq, heir
-- Returns: 1 if it was there and had not expired, with that seq unless that is "", else 0

local function bequeath(queue, entries, order, id, seq, heir)
  local removed, value = leaveAlone(queue, id .. '\0' .. (seq == '' and seq or seq .. ' '))
  removed = removed or leaveLine(value, queue, entries, order, id, seq, heir)
  if removed then return removed end
  local record = redis.call('HGET', entries, id)
  if not record or (seq ~= '' and string.match(record, '^%d+') ~= seq) then return 0 end
  local line = open(queue, entries, order, value)
  line.asking = heir
  line:mark()
  line:drop(id, record)
  line:settle()
  return isLive(record) and 1 or 0
end
