/** The Lua script as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local counterKey = KEYS[1]
local counter = nil
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
local function acquire(lock, id, ttlMs, seq, rest)
  local state = seq == '' and 'c' .. text(currentCounter()) or 't' .. seq
  local value = redis.call('SET', lock, id .. '\0' .. state .. '\0' .. rest, 'NX', 'GET', 'PX', ttlMs)
  if not value then return seq == '' and '+' .. string.sub(state, 2) or '+' end
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(value, id, '')
  if number then return '=' .. kind .. text(number) .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. value
end
local function store(lock, id, token)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, '')
  if not number then return '-' end
  local wanted = tonumber(token)
  if number > wanted or kind == 'c' and number == wanted then return '=' .. text(number) end
  if kind == 'c' or number < wanted then
    rewrite(lock, value, wanted)
    raise(wanted)
  end
  return '+' .. redis.call('PTTL', lock)
end
local function renew(lock, evicted, id, seq, ttlMs)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, seq)
  if not number then
    if redis.call('DEL', evicted) == 1 then return 'x' end
    return value and '-' or '0'
  end
  if kind == 'c' then
    rewrite(lock, value, tonumber(seq))
    raise(tonumber(seq))
  end
  if redis.call('PEXPIRE', lock, ttlMs, 'GT') == 1 then return '+' .. ttlMs end
  return '+' .. redis.call('PTTL', lock)
end
local function repair(lock, id, seq, ttlMs, rest, fenced)
  if not redis.call('SET', lock, id .. '\0t' .. seq .. '\0' .. rest, 'NX', 'PX', ttlMs) then return 0 end
  if fenced == '1' then raise(tonumber(seq)) end
  return 1
end
local function remove(lock, id, seq, tell)
  if not own(redis.call('GET', lock), id, seq) then return 0 end
  redis.call('DEL', lock)
  if tell == '1' then redis.call('PUBLISH', lock, id) end
  return 1
end
local function evict(lock, evicted, id, seq)
  if not own(redis.call('GET', lock), id, seq) then return 0 end
  local leftMs = redis.call('PTTL', lock)
  if leftMs > 0 then redis.call('SET', evicted, '1', 'PX', leftMs) end
  redis.call('DEL', lock)
  redis.call('PUBLISH', lock, id)
  return 1
end
local function look(lock)
  local value = redis.call('GET', lock)
  if not value then return '' end
  return redis.call('PTTL', lock) .. ' ' .. value
end
local function run(call, keys, key, arguments, argument)
  local given = {}
  for i = 0, keys - 1 do given[#given + 1] = KEYS[key + i] end
  for i = 1, arguments do given[#given + 1] = ARGV[argument + i] end
  return call(unpack(given))
end
local results = { text(nowUs) }
if ARGV[1] ~= '0' and nowUs > tonumber(ARGV[1]) * 1000 then return { results[1], '!LATE' } end
local key, argument = 2, 2
while argument <= #ARGV do
  local letter = ARGV[argument]
  local call, keys, arguments
  if letter == 'a' then
    call, keys, arguments = acquire, 1, 4
  elseif letter == 'd' then
    call, keys, arguments = remove, 1, 3
  elseif letter == 's' then
    call, keys, arguments = store, 1, 2
  elseif letter == 'r' then
    call, keys, arguments = renew, 2, 3
  elseif letter == 'f' then
    call, keys, arguments = repair, 1, 5
  elseif letter == 'e' then
    call, keys, arguments = evict, 2, 2
  else
    call, keys, arguments = look, 1, 0
  end
  local done, result = pcall(run, call, keys, key, arguments, argument)
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
  argument = argument + arguments + 1
end
return results
`;
