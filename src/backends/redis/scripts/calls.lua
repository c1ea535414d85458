-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: those of each call, in turn
-- Arguments: if any call is an append, "u" and until when (ms of the server's clock) an append may still begin, and what all
--   entries that are appended have in common, "<channel>\0<owner>"; then each call: its letter and its arguments, with "\0"
--   between them, or "j" and an id for an append whose other arguments are those of the append before it
-- Returns: seconds and microseconds of the time, then the result of each call; "!" and a text for one that failed, "!LATE"
--   for an append that comes too late. As one text with spaces between them if no result is more than a word

local K, match = KEYS, string.match
-- A number would take a while to be written.
local words = { [0] = '0', [1] = '1' }
-- Where the calls begin: words come before them only where one is an append.
local from = letter == 117 and 3 or 1
local late = from == 3 and math.floor(nowUs / 1000) > tonumber(sub(ARGV[1], 2))
local results = { time[1], time[2] }
local whole, key, plain = nil, 1, true
-- The last append that was given whole, and its arguments.
local before, ttlMs, atOnce, shape, more
for place = from, #ARGV do
  local given = ARGV[place]
  local letter = sub(given, 1, 1)
  local done, result = true, nil
  local name, keys, arguments
  -- Most calls are done at once; what is left takes the long way.
  if letter == 'j' or letter == 'a' then
    name, keys, arguments = 'append', 3, '^a([^%z]*)%z(%d+)%z(%d)%z(%a,%d+,%d*,)(.*)$'
    local id
    if letter == 'j' then
      id = sub(given, 2)
    else
      before, ending = given, nil
      id, ttlMs, atOnce, shape, more = match(given, arguments)
    end
    if late then
      done, result = false, 'LATE'
    else
      done, result = pcall(joinQuickly, K[key], K[key + 1], K[key + 2], id, ttlMs, atOnce, shape, more)
    end
    if letter == 'j' and done and result == nil then given = 'a' .. id .. match(before, '%z.*$') end
  elseif letter == 'd' then
    name, keys, arguments = 'remove', 3, '^d([^%z]*)%z(%d*) ?$'
    local line
    done, result, line = pcall(leaveAlone, K[key], sub(given, 2))
    if line then
      done, result = pcall(leaveLine, line, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'b' then
    name, keys, arguments = 'bequeath', 3, '^b([^%z]*)%z(%d+)%z(.*)$'
    local line = met or redis.call('GET', K[key])
    met = nil
    if line then
      done, result = pcall(leaveLine, line, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'k' then
    name, keys, arguments = 'keep', 1, '^k(%d+)%z(%d+)%z(.*)$'
    local ttlMs, count, owned = match(given, arguments)
    done, result = pcall(keep, key, ttlMs, count, owned)
    keys = keys * count
  elseif letter == 'r' then
    name, keys, arguments = 'renew', 4, '^r([^%z]*)%z(%d+)%z(%d+)$'
    done, result = pcall(prolongQuickly, K[key], K[key + 1], match(given, arguments))
  elseif letter == 'e' then
    name, keys, arguments = 'evict', 4, '^e([^%z]*)%z(%d*)$'
  elseif letter == 'p' then
    name, keys, arguments = 'prune', 3, '^$'
  else
    name, keys, arguments = 'list', 2, '^$'
  end
  if done and result == nil then
    whole = whole or define()
    local list = { unpack(K, key, key + keys - 1) }
    for _, argument in ipairs({ match(given, arguments) }) do list[#list + 1] = argument end
    done, result = pcall(whole[name], unpack(list))
  end
  if not done then
    plain, result = false, '!' .. (type(result) == 'table' and result.err or tostring(result))
  elseif not result or type(result) == 'table' then
    plain = false
  end
  results[#results + 1] = words[result] or result
  key = key + keys
end
return plain and table.concat(results, ' ') or results
