-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: the counter of this node, then those of each call, in turn
-- Arguments: until when (ms of this node's clock, 0: for ever) they may still begin; then for each call its letter and its
--   arguments, in turn
-- Returns: the time in µs, then the result of each call; "!" and a text for one that failed; after the time only "!LATE" if
--   they came too late

local results = { nowUs }
if ARGV[1] ~= '0' and tonumber(nowUs) > ARGV[1] * 1000 then return { nowUs, '!LATE' } end
local rarely = nil
local key, argument = 2, 2
while argument <= #ARGV do
  local letter = ARGV[argument]
  local call, keys, arguments
  if letter == 'a' then
    call, keys, arguments = acquire, 1, 5
  elseif letter == 'd' then
    call, keys, arguments = remove, 1, 3
  elseif letter == 's' then
    call, keys, arguments = store, 1, 2
  else
    rarely = rarely or define()
    if letter == 'r' then
      call, keys, arguments = rarely.renew, 2, 3
    elseif letter == 'f' then
      call, keys, arguments = rarely.repair, 1, 5
    elseif letter == 'e' then
      call, keys, arguments = rarely.evict, 2, 2
    else
      call, keys, arguments = rarely.look, 1, 0
    end
  end
  local a, b, c, d, e = unpack(ARGV, argument + 1, argument + arguments)
  local done, result
  if keys == 1 then
    done, result = pcall(call, KEYS[key], a, b, c, d, e)
  else
    done, result = pcall(call, KEYS[key], KEYS[key + 1], a, b, c)
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
  argument = argument + arguments + 1
end
return results
