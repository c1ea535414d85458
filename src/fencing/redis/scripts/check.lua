-- Purpose: shows a token to a resource. What follows this text is done only if the resource has seen no newer one.
-- Keys: fence
-- Arguments: token, keepMs
-- Returns: "stale" and the highest token if that is newer; otherwise nothing, and what follows finds its own keys and
--   arguments in KEYS and ARGV
--
-- Tokens are compared as text, by length and then byte by byte: Lua's numbers lose digits above 2^53.

local function isOlder(one, other)
  if #one ~= #other then return #one < #other end
  for i = 1, #one do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return false
end

local fence = table.remove(KEYS, 1)
local token = table.remove(ARGV, 1)
local keepMs = table.remove(ARGV, 1)
local highest = redis.pcall('GET', fence)
if highest and (type(highest) == 'table' or not string.find(highest, '^%d+$')) then
  return redis.error_reply('FENCE ' .. fence .. ' does not hold a token')
end
if highest and isOlder(token, highest) then return { 'stale', highest } end
-- Before the write: nothing that follows can leave a write without its token.
if keepMs ~= '' then
  redis.call('SET', fence, token, 'PX', keepMs)
elseif highest ~= token then
  redis.call('SET', fence, token)
end
