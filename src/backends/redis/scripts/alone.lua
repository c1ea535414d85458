-- Purpose: does one call that travels alone, if it joins an empty queue, leaves one that it has to itself or is the first of a line of
--   writers and leaves, as most do: before anything else is defined, since that would take longer than the call.
-- Keys: those of the call
-- Arguments: as calls.lua
-- Returns: the seq of an append, which is the time in microseconds; 1 or 0 for a remove or bequeath; nothing if the whole is needed

-- What the queue was found to be: whoever needs it does not ask again.
local met
if #ARGV == 3 then
  local given, queue = ARGV[3], KEYS[1]
  local letter = string.byte(given)
  if letter == 100 then
    met = redis.call('GET', queue)
    if not met then return 0 end
    local own = string.sub(given, 2)
    if string.find(met, own, 1, true) == 1 then
      redis.call('DEL', queue)
      return 1
    end
    if string.byte(met) ~= 0 then return 0 end
    local left = leaveLine(met, queue, KEYS[2], KEYS[3], string.match(given, '^d([^%z]*)%z(%d*)'))
    if left then return left end
  elseif letter == 98 then
    met = redis.call('GET', queue)
    local left = met and leaveLine(met, queue, KEYS[2], KEYS[3], string.match(given, '^b([^%z]*)%z(%d+)%z(.*)$'))
    if left then return left end
  elseif letter == 97 then
    time = redis.call('TIME')
    local second, us = time[1] + 0, time[2] + 0
    if second * 1000 + math.floor(us / 1000) <= ARGV[1] + 0 then
      local id, ttlMs, shape, more = string.match(given, '^a([^%z]*%z)(%d+)%z%d%z(%a,%d+,%d*,)(.*)$')
      local seq = time[1] .. string.sub('000000', #time[2] + 1) .. time[2]
      local ms = math.ceil(us / 1000) + ttlMs
      local life = string.format('%d%03d', second + math.floor(ms / 1000), ms % 1000)
      local record = id .. seq .. ' ' .. life .. ' ' .. shape .. ARGV[2] .. more
      met = redis.call('SET', queue, record, 'NX', 'GET', 'PXAT', life)
      if not met then return seq end
    end
  end
end
