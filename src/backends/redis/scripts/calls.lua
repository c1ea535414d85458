-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: those of each call, in turn
-- Arguments: until when (ms of the server's clock, 0: for ever) an append may still begin; then for each call its letter
--   and its arguments, in turn
-- Returns: the time in µs, then the result of each call; "!" and a text for one that failed, "!LATE" for an append that
--   comes too late

local whole = nil

local function run(call, keys, key, arguments, argument)
  local given = {}
  for i = 0, keys - 1 do given[#given + 1] = KEYS[key + i] end
  for i = 1, arguments do given[#given + 1] = ARGV[argument + i] end
  whole = whole or define()
  return whole[call](unpack(given))
end

-- Most calls are done here; what is left takes the long way.
local function begin(call, key, argument)
  if call == 'append' then return putAlone(KEYS[key], ARGV[argument + 1], ARGV[argument + 2], ARGV[argument + 3]) end
  if call == 'remove' then return removeAlone(KEYS[key], ARGV[argument + 1], ARGV[argument + 2]) end
  if call == 'renew' then return renewAlone(KEYS[key], ARGV[argument + 1], ARGV[argument + 2], ARGV[argument + 3]) end
  return nil
end

local function perform(call, keys, key, arguments, argument)
  local result = begin(call, key, argument)
  if result == nil then result = run(call, keys, key, arguments, argument) end
  return result
end

local late = ARGV[1] ~= '0' and nowMs > tonumber(ARGV[1])
local results = { text(nowUs) }
local key, argument = 1, 2
while argument <= #ARGV do
  local letter = ARGV[argument]
  local call, keys, arguments
  if letter == 'a' then
    call, keys, arguments = 'append', 3, 4
  elseif letter == 'd' then
    call, keys, arguments = 'remove', 3, 2
  elseif letter == 'r' then
    call, keys, arguments = 'renew', 4, 3
  elseif letter == 'e' then
    call, keys, arguments = 'evict', 4, 2
  elseif letter == 'p' then
    call, keys, arguments = 'prune', 3, 0
  else
    call, keys, arguments = 'list', 2, 0
  end
  local done, result = true, '!LATE'
  if not late or letter ~= 'a' then
    done, result = pcall(perform, call, keys, key, arguments, argument)
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
  argument = argument + arguments + 1
end
return results
