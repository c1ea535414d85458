-- Purpose: what all calls share: the moment of the call, seqs and the life of records.
-- Keys: none of its own
-- Arguments: none of its own
-- Returns: nothing, it only defines
--
-- A record is "<seq> <expiry in ms> <mode>,<weight>,<permits>,<channel>\0<rest>". One that is alone in its queue and has not been
-- renewed may have "+<ttl in ms>" instead of its expiry, as alone.lua writes it. Numbers stay below 2^53; they are
-- written by text(), since Lua's own way keeps 14 digits. Each function that is defined here costs every call a little.

time = time or redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
-- The end of this millisecond: what is left of a life is counted from here, so that it is never rounded up.
local laterMs = math.ceil(nowUs / 1000)
-- The last seq of this call. Each is above the one before, whatever their queues, since one that was emptied remembers
-- nothing. None is ahead of the clock when the next call begins: to give one takes longer than a microsecond.
local lastGiven = nowUs - 1
-- The keys of a line live longer than its entries by this part of a ttl, so that not every newcomer has to extend them.
local spareShare = 8
-- The last expiry that was given, and its text, and what the record of an entry ends with from there on: most entries of one call have the same.
local lastExpiry, lastLife, ending

-- In two parts, each of which fits 32 bits: '%.0f' would do it, too, but takes twice as long.
local function text(number)
  if number < 1000000 then return string.format('%d', number) end
  return string.format('%d%06d', math.floor(number / 1000000), number % 1000000)
end

-- Until when an entry lives that came at that seq with that ttl.
local function lifeOf(seq, ttlMs)
  return math.ceil(seq / 1000) + ttlMs
end

local function isLive(record)
  return string.match(record, '^%d+ (%d+)') * 1000 > nowUs
end
