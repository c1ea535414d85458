-- Purpose: the calls that most often are all: an entry that joins an empty queue, is alone and leaves, or is alone and
--   renewed. It would cost each script call too much to define what only longer queues need.
-- Keys: those of the call
-- Arguments: those of the call
-- Returns: what the call does; nil if the whole of it is needed

local function putAlone(queue, id, ttlMs, entry)
  local seq, expiry = text(nextSeq(0)), text(laterMs + ttlMs)
  if redis.call('SET', queue, id .. '\0' .. seq .. ' ' .. expiry .. ' ' .. entry, 'NX', 'PXAT', expiry) then
    return seq
  end
  return nil
end

-- The record of an entry that is the only one; nil if it is not.
local function recordAlone(value, id)
  if value and string.sub(value, 1, #id + 1) == id .. '\0' then return string.sub(value, #id + 2) end
  return nil
end

local function removeAlone(queue, id, seq)
  local value = redis.call('GET', queue)
  if not value then return 0 end
  local record = recordAlone(value, id)
  if not record then return nil end
  if seq ~= '' and string.match(record, '^%d+') ~= seq then return 0 end
  redis.call('DEL', queue)
  return isLive(record) and 1 or 0
end

local function renewAlone(queue, id, seq, ttlMs)
  local record = recordAlone(redis.call('GET', queue), id)
  if not record or string.match(record, '^%d+') ~= seq or not isLive(record) then return nil end
  local expiry = laterMs + ttlMs
  if expiry <= expiryOf(record) then return expiryOf(record) - laterMs end
  local renewed = seq .. ' ' .. text(expiry) .. string.match(record, '^%d+ %d+( .*)$')
  redis.call('SET', queue, id .. '\0' .. renewed, 'PXAT', text(expiry))
  return expiry - laterMs
end
