-- Purpose: takes the first entry out of a line of writers and tells the next, as most hand-overs do: defined before the rest, since
--   what that needs would take longer than the call.
-- Keys: those of the call
-- Arguments: those of the call
-- Returns: nothing, it only defines

-- Tells a client, on the channel that its entry names. One that ends in "}" is sharded: it is heard on the node that has the
-- slot alone. Where nobody hears it (not yet, or no longer), the message goes to the plain channel that its name begins with.
local function publish(channel, message)
  if string.byte(channel, -1) == 125 then
    local heard = redis.pcall('SPUBLISH', channel, message)
    if type(heard) == 'number' and heard > 0 then return end
    channel = string.match(channel, '^(.*){')
  end
  if channel and channel ~= '' then redis.call('PUBLISH', channel, message) end
end

-- The line is what the queue is; the heir has the lock already and is not told. Gives 1 if the entry was there and had not expired,
-- else 0; nil if the whole is needed, and then nothing has changed.
local function leaveLine(line, queue, entries, order, id, seq, heir)
  if not string.find(line, '^%z%d+ %d+ w%z') then return nil end
  -- As texts: the server writes numbers out as fractions first, which takes it a while.
  local first = redis.call('ZRANGE', order, '0', '1')
  if first[1] ~= id then return nil end
  local records = redis.call('HMGET', entries, id, first[2] or id)
  if not records[1] or not records[2] then return nil end
  local ownSeq, life = string.match(records[1], '^(%d+) (%d+)')
  if seq ~= '' and seq ~= ownSeq then return 0 end
  time = time or redis.call('TIME')
  local nowMs = time[1] * 1000 + time[2] / 1000
  if first[2] then
    local nextSeq, nextLife, channel = string.match(records[2], '^(%d+) (%d+) w,%d+,,([^%z]*)')
    if nextLife + 0 <= nowMs then return nil end
    redis.call('HDEL', entries, id)
    redis.call('ZREM', order, id)
    if first[2] ~= heir then publish(channel, first[2] .. '\0' .. nextSeq) end
  else
    redis.call('DEL', queue, entries, order)
  end
  return life + 0 > nowMs and 1 or 0
end
