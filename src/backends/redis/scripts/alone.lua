-- Purpose: does one call that travels alone, if it joins an empty queue or leaves one that it has to itself, as most do: before anything
--   is defined, since that would take longer than the call.
-- Keys: those of the call
-- Arguments: for an append that travels alone, until when it may still begin (us of the server's clock, with "!" behind it if it is
--   not to wait), its id and "\0", what its record ends with from " +<ttlMs> " on, and its ttlMs; else as calls.lua
-- Returns: the seq of an append, which is the time in microseconds; 1 or 0 for a remove; nothing if more is needed

-- The time, once it was read, and what the queue was found to be: whoever needs them does not ask again.
local time, met
local letter = string.byte(ARGV[1])
if letter < 58 then
  time = redis.call('TIME')
  local micros = time[2]
  if #micros < 6 then micros = string.sub('00000', #micros) .. micros end
  local seq = time[1] .. micros
  -- As texts, which are as long as each other: to make numbers of them would take longer.
  if seq <= ARGV[1] then
    met = redis.call('SET', KEYS[1], ARGV[2] .. seq .. ARGV[3], 'NX', 'GET', 'PX', ARGV[4])
    if not met then return seq end
  end
  -- The long way knows it as one of several.
  local untilMs, atOnce = string.match(ARGV[1], '^(%d*)%d%d%d(!?)$')
  local shape, common, more = string.match(ARGV[3], '^ %+%d+ (%a,%d+,%d*,)([^%z]*%z[^%z]*)(.*)$')
  letter = 117
  ARGV[1], ARGV[2], ARGV[3], ARGV[4] =
    'u' .. untilMs, common, 'a' .. ARGV[2] .. ARGV[4] .. '\0' .. #atOnce .. '\0' .. shape .. more, nil
elseif letter == 100 and #ARGV == 1 then
  met = redis.call('GET', KEYS[1])
  if not met then return 0 end
  if string.find(met, string.sub(ARGV[1], 2), 1, true) == 1 then
    redis.call('DEL', KEYS[1])
    return 1
  end
  if string.byte(met) ~= 0 then return 0 end
end
