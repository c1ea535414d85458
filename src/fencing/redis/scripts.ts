/** The Lua scripts of the guard as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Shows a token, and ends there if it is stale: scripts/check.lua. */
export const checkScript: string = String.raw`local function isOlder(one, other)
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
if keepMs ~= '' then
  redis.call('SET', fence, token, 'PX', keepMs)
elseif highest ~= token then
  redis.call('SET', fence, token)
end
`;

/** Sets a value: scripts/set.lua. */
export const setScript: string = String.raw`if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
`;
