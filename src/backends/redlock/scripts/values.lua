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
-- never goes back while the node keeps its data, whatever its clock does. Numbers stay below 2^53.

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local counterKey = KEYS[1]
local counter = nil

-- In two parts, each of which fits 32 bits: Lua's own way keeps 14 digits.
local function text(number)
  if number < 1000000 then return string.format('%d', number) end
  return string.format('%d%06d', math.floor(number / 1000000), number % 1000000)
end

local function stored()
  return tonumber(redis.call('GET', counterKey) or '0')
end

local function currentCounter()
  counter = counter or math.max(stored(), nowUs)
  return counter
end

local function raise(token)
  if stored() < token then redis.call('SET', counterKey, text(token)) end
  if counter and counter < token then counter = token end
end

local function read(value)
  local id, kind, number = string.match(value, '^([^%z]*)%z(%a)(%d+)%z')
  if not id then return value, 't', 0 end
  return id, kind, tonumber(number)
end

-- The number of our entry and its kind; nothing if the value is not ours. Without a token yet, any life of it is meant.
local function own(value, id, seq)
  if not value then return nil end
  local owner, kind, number = read(value)
  if owner ~= id then return nil end
  if seq ~= '' and kind == 't' and number ~= tonumber(seq) then return nil end
  return number, kind
end

local function rewrite(key, value, token)
  redis.call('SET', key, (string.gsub(value, '%z%a%d+%z', '\0t' .. text(token) .. '\0', 1)), 'KEEPTTL')
end
