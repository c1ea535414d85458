-- Purpose: what all calls share: whose a value is, the counter of this node, and its clock.
-- Keys: none of its own
-- Arguments: none of its own
-- Returns: nothing, it only defines
--
-- A value is "<id>\0<kind><number>\0<rest>". Kind t: the number is the token, or in a lock without tokens what tells one
-- life of an entry from another. Kind c: no token yet, the number is what the counter of this node was. A value that is
-- not of this form is somebody else's: all of it is the id, and its number is 0.
--
-- The counter of a node is the largest token that it has ever stored for any lock, or its clock in µs if that is more: it
-- never goes back while the node keeps its data, whatever its clock does. It is read and written once for all calls. Numbers
-- stay below 2^53, and are kept as text, since Lua's own way to write them keeps 14 digits.

local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)

-- The largest token that is stored, once it was looked up; false if there is none.
local stored, raised = nil, false

local function counter()
  if stored == nil then stored = redis.call('GET', KEYS[1]) end
  if stored and tonumber(stored) > tonumber(nowUs) then return stored end
  return nowUs
end

local function raise(token)
  if stored == nil then stored = redis.call('GET', KEYS[1]) end
  if not stored or tonumber(stored) < tonumber(token) then stored, raised = token, true end
end

-- If it fails, all calls have failed.
local function keepCounter()
  if raised then redis.call('SET', KEYS[1], stored) end
end

-- The number of our entry and its kind; nothing if the value is not ours. Without a token yet, any life of it is meant.
local function own(value, id, seq)
  if not value then return nil end
  if value == id then
    if seq == '' or seq == '0' then return '0', 't' end
    return nil
  end
  local head = id .. '\0'
  if string.sub(value, 1, #head) ~= head then return nil end
  local kind, number = string.match(value, '^([ct])(%d+)%z', #head + 1)
  if not kind or seq ~= '' and kind == 't' and number ~= seq then return nil end
  return number, kind
end

-- What is said of a lock that is not free: "=", the kind and the number and " " and the milliseconds that are left, if it
-- is of the same owner as the value that we wanted it to have; else "-", what is left and " " and its value.
local function taken(lock, was, value)
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(was, string.match(value, '^[^%z]*'), '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. was
end

-- On which it is told that a lock was taken out.
local function channelOf(lock)
  return 'holdfast:redlock:free:' .. lock
end

-- Gives our value its token.
local function rewrite(lock, value, id, token)
  local rest = string.sub(value, string.find(value, '\0', #id + 2, true), -1)
  redis.call('SET', lock, id .. '\0t' .. token .. rest, 'KEEPTTL')
  raise(token)
end
