-- Purpose: what all calls share: the moment of the call, seqs and the life of records.
-- Keys: none of its own
-- Arguments: none of its own
-- Returns: nothing, it only defines
--
-- A record is "<seq> <expiry in ms> <mode>,<weight>,<permits>,<channel>\0<rest>". Numbers stay below 2^53; they are
-- written by text(), since Lua's own way keeps 14 digits.

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
-- The end of this millisecond: what is left of a life is counted from here, so that it is never rounded up.
local laterMs = math.ceil(nowUs / 1000)
local lastGiven = 0

-- In two parts, each of which fits 32 bits: '%.0f' would do it, too, but takes ten times as long.
local function text(number)
  if number < 1000000 then return string.format('%d', number) end
  return string.format('%d%06d', math.floor(number / 1000000), number % 1000000)
end

-- Above all earlier ones of the queue, and of this call: a queue that was emptied remembers nothing.
local function nextSeq(last)
  lastGiven = math.max(nowUs, last + 1, lastGiven + 1)
  return lastGiven
end

local function expiryOf(record)
  return tonumber(string.match(record, '^%d+ (%d+)'))
end

local function isLive(record)
  return expiryOf(record) > nowMs
end
