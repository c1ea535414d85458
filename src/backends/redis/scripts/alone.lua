-- Purpose: does one call that travels alone, if it joins an empty queue or leaves one that it has to itself, as most do: before anything
--   is defined, since that would take longer than the call.
-- Keys: those of the call
-- Arguments: as calls.lua
-- Returns: the seq of an append, which is the time in microseconds; 1 or 0 for a remove; nothing if more is needed

-- The time, once it was read, and what the queue was found to be: whoever needs them does not ask again.
local time, met
local letter = string.byte(ARGV[1])
-- Where the calls begin: words come before them only where one is an append.
local from = letter > 57 and 1 or 3
local isAlone = #ARGV == from
if isAlone and from == 3 then
  local id, ttlMs, shape, more = string.match(ARGV[3], '^a([^%z]*%z)(%d+)%z%d%z(%a,%d+,%d*,)(.*)$')
  time = redis.call('TIME')
  local seq = time[1] .. string.sub('000000', #time[2] + 1) .. time[2]
  local nowUs = seq + 0
  local us = nowUs % 1000
  local ms = (nowUs - us) / 1000
  if ms <= ARGV[1] + 0 then
    -- The end of this millisecond is what a life counts from.
    ms = ms + ttlMs + (us > 0 and 1 or 0)
    -- In two parts, each of which fits 32 bits; what is not whole of the first does not count.
    local life = string.format('%d%03d', ms / 1000, ms % 1000)
    met = redis.call('SET', KEYS[1], id .. seq .. ' ' .. life .. ' ' .. shape .. ARGV[2] .. more, 'NX', 'GET', 'PXAT', life)
    if not met then return seq end
  end
elseif isAlone and letter == 100 then
  met = redis.call('GET', KEYS[1])
  if not met then return 0 end
  if string.find(met, string.sub(ARGV[1], 2), 1, true) == 1 then
    redis.call('DEL', KEYS[1])
    return 1
  end
  if string.byte(met) ~= 0 then return 0 end
end
