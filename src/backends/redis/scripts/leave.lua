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
-- else 0; nil if the whole is needed, and then nothing has changed. In our days a seq has 16 digits and a life 13, so all is found by
-- its place, and lives are compared with the time as texts: on a server that slept, to match patterns and to make numbers takes as
-- long as a command. Whatever has other lengths is left to the whole.
local function leaveLine(line, queue, entries, order, id, seq, heir)
  local sub = string.sub
  if sub(line, 33, 34) ~= 'w\0' then return nil end
  -- As texts: the server writes numbers out as fractions first, which takes it a while.
  local first = redis.call('ZRANGE', order, '0', '1')
  local behind = first[2]
  if first[1] ~= id then return nil end
  local records = redis.call('HMGET', entries, id, behind or id)
  local own, other = records[1], records[2]
  if not own or not other or sub(own, 31, 31) ~= ' ' then return nil end
  if seq ~= '' and sub(own, 1, 17) ~= seq .. ' ' then return 0 end
  time = time or redis.call('TIME')
  local now = time[1] .. sub('00000' .. time[2], -6)
  if #now ~= 16 then return nil end
  if behind then
    local channel = string.match(other, '^ w,%d+,,([^%z]*)', 31)
    if not channel or sub(other, 18, 30) <= now then return nil end
    redis.call('HDEL', entries, id)
    redis.call('ZREM', order, id)
    if behind ~= heir then publish(channel, behind .. '\0' .. sub(other, 1, 16)) end
  else
    redis.call('DEL', queue, entries, order)
  end
  return sub(own, 18, 30) > now and 1 or 0
end
