-- Purpose: does one call that travels alone and takes the first entry out of a line of writers, before the rest is defined.
-- Keys: those of the call
-- Arguments: as calls.lua
-- Returns: 1 or 0; nothing if more is needed

if #ARGV == 1 and letter == 100 then
  local given = ARGV[1]
  local idEnd = string.find(given, '\0', 2, true)
  -- A seq has a space behind it.
  local left = leaveLine(met, KEYS[1], KEYS[2], KEYS[3], string.sub(given, 2, idEnd - 1), string.sub(given, idEnd + 1, -2))
  if left then return left end
elseif #ARGV == 1 and letter == 98 then
  met = redis.call('GET', KEYS[1])
  local left = met and leaveLine(met, KEYS[1], KEYS[2], KEYS[3], string.match(ARGV[1], '^b([^%z]*)%z(%d+)%z(.*)$'))
  if left then return left end
end
