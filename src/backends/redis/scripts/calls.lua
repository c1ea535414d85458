-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: those of each call, in turn
-- Arguments: until when (ms of the server's clock, 0: for ever) an append may still begin; then for each call its letter
--   and its arguments, in turn
-- Returns: the time in µs, then the result of each call; "!" and a text for one that failed, "!LATE" for an append that
--   comes too late

local whole = nil
local late = ARGV[1] ~= '0' and math.floor(nowUs / 1000) > tonumber(ARGV[1])
local results = { text(nowUs) }
local key, argument = 1, 2
local K, A = KEYS, ARGV
while A[argument] do
  local letter = A[argument]
  local done, result = true, nil
  local call, keys, arguments
  -- Most calls are done at once; what is left takes the long way.
  if letter == 'a' then
    call, keys, arguments = 'append', 3, 4
    if late then
      result = '!LATE'
    else
      done, result = pcall(joinQuickly, K[key], K[key + 1], K[key + 2], A[argument + 1], A[argument + 2], A[argument + 3], A[argument + 4])
    end
  elseif letter == 'd' then
    call, keys, arguments = 'remove', 3, 2
    done, result = pcall(leaveQuickly, K[key], K[key + 1], K[key + 2], A[argument + 1], A[argument + 2])
  elseif letter == 'r' then
    call, keys, arguments = 'renew', 4, 3
    done, result = pcall(prolongQuickly, K[key], A[argument + 1], A[argument + 2], A[argument + 3])
  elseif letter == 'e' then
    call, keys, arguments = 'evict', 4, 2
  elseif letter == 'p' then
    call, keys, arguments = 'prune', 3, 0
  else
    call, keys, arguments = 'list', 2, 0
  end
  if done and result == nil then
    whole = whole or define()
    local given = {}
    for i = 0, keys - 1 do given[#given + 1] = K[key + i] end
    for i = 1, arguments do given[#given + 1] = A[argument + i] end
    done, result = pcall(whole[call], unpack(given))
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
  argument = argument + arguments + 1
end
return results
