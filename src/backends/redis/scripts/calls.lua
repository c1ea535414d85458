-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: those of each call, in turn
-- Arguments: until when (ms of the server's clock, 0: for ever) an append may still begin; then for each call its letter
--   and its arguments, in turn
-- Returns: the time in µs, then the result of each call; "!" and a text for one that failed, "!LATE" for an append that
--   comes too late

local calls = {
  a = { append, 2, 4 },
  d = { remove, 2, 2 },
  e = { evict, 3, 2 },
  r = { renew, 3, 3 },
  p = { prune, 2, 0 },
  l = { list, 1, 0 },
}

local late = ARGV[1] ~= '0' and nowMs > tonumber(ARGV[1])
local results = { text(nowUs) }
local key, argument = 1, 2
while argument <= #ARGV do
  local letter = ARGV[argument]
  local call = calls[letter]
  local given = {}
  for i = 0, call[2] - 1 do given[#given + 1] = KEYS[key + i] end
  for i = 1, call[3] do given[#given + 1] = ARGV[argument + i] end
  local result
  if late and letter == 'a' then
    result = '!LATE'
  else
    local done
    done, result = pcall(call[1], unpack(given))
    if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  end
  results[#results + 1] = result
  key = key + call[2]
  argument = argument + call[3] + 1
end
return results
