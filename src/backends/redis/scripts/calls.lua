-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: those of each call, in turn
-- Arguments: until when (ms of the server's clock, 0: for ever) an append may still begin; what all entries that are
--   appended have in common, "<channel>\0<owner>"; then each call: its letter and its arguments, with "\0" between them
-- Returns: seconds and microseconds of the time, then the result of each call; "!" and a text for one that failed, "!LATE"
--   for an append that comes too late

local K, match = KEYS, string.match
local late = ARGV[1] ~= '0' and math.floor(nowUs / 1000) > tonumber(ARGV[1])
local results = { time[1], time[2] }
local whole, key = nil, 1
for place = 3, #ARGV do
  local given = ARGV[place]
  local letter = string.sub(given, 1, 1)
  local done, result = true, nil
  local call, keys, arguments
  -- Most calls are done at once; what is left takes the long way.
  if letter == 'a' then
    call, keys, arguments = 'append', 3, '^a([^%z]*)%z(%d+)%z(%d)%z(%a,%d+,%d*,)(.*)$'
    if late then
      result = '!LATE'
    else
      done, result = pcall(joinQuickly, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'd' then
    call, keys, arguments = 'remove', 3, '^d([^%z]*)%z(%d*) ?$'
    local line
    done, result, line = pcall(leaveAlone, K[key], string.sub(given, 2))
    if line then
      done, result = pcall(leaveLine, line, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'b' then
    call, keys, arguments = 'bequeath', 3, '^b([^%z]*)%z(%d+)%z(.*)$'
    local line = met or redis.call('GET', K[key])
    met = nil
    if line then
      done, result = pcall(leaveLine, line, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'k' then
    call, keys, arguments = 'keep', 1, '^k(%d+)%z(%d+)%z(.*)$'
    local ttlMs, count, owned = match(given, arguments)
    done, result = pcall(keep, key, ttlMs, count, owned)
    keys = keys * count
  elseif letter == 'r' then
    call, keys, arguments = 'renew', 4, '^r([^%z]*)%z(%d+)%z(%d+)$'
    done, result = pcall(prolongQuickly, K[key], K[key + 1], match(given, arguments))
  elseif letter == 'e' then
    call, keys, arguments = 'evict', 4, '^e([^%z]*)%z(%d*)$'
  elseif letter == 'p' then
    call, keys, arguments = 'prune', 3, '^$'
  else
    call, keys, arguments = 'list', 2, '^$'
  end
  if done and result == nil then
    whole = whole or define()
    local list = { unpack(K, key, key + keys - 1) }
    for _, argument in ipairs({ match(given, arguments) }) do list[#list + 1] = argument end
    done, result = pcall(whole[call], unpack(list))
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
end
return results
