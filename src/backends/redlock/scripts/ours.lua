-- Purpose: shows which of some keys are locks of ours, by the form of their values; a script of its own.
-- Keys: those that are looked at
-- Arguments: none
-- Returns: those of them that are

local ours = {}
for _, key in ipairs(KEYS) do
  local head = redis.pcall('GETRANGE', key, 0, 1023)
  if type(head) == 'string' and string.find(head, '^[^%z]*%z[ct]%d+%z') then ours[#ours + 1] = key end
end
return ours
