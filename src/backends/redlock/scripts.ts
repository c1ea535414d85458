/** The Lua scripts as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
local function currentCounter()
  local stored = redis.call('GET', KEYS[1])
  if stored and tonumber(stored) > tonumber(nowUs) then return stored end
  return nowUs
end
local function raise(token)
  local stored = redis.call('GET', KEYS[1])
  if not stored or tonumber(stored) < tonumber(token) then redis.call('SET', KEYS[1], token) end
end
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
local function rewrite(lock, value, id, token)
  local rest = string.sub(value, string.find(value, '\0', #id + 2, true), -1)
  redis.call('SET', lock, id .. '\0t' .. token .. rest, 'KEEPTTL')
  raise(token)
end
local function acquire(lock, id, ttlMs, seq, rest, fenced)
  local state, counter = 't' .. seq, ''
  if fenced == '1' then
    local current = currentCounter()
    local ahead = tonumber(seq) - tonumber(current)
    if ahead <= 0 or ahead > 1000000 then
      state, counter = 'c' .. current, current
    end
  end
  local value = redis.call('SET', lock, id .. '\0' .. state .. '\0' .. rest, 'NX', 'GET', 'PX', ttlMs)
  if not value then
    if fenced == '1' and counter == '' then redis.call('SET', KEYS[1], seq) end
    return '+' .. counter
  end
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(value, id, '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. value
end
local function store(lock, id, token)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, '')
  if not number then return '-' end
  if number ~= token or kind == 'c' then
    if tonumber(number) >= tonumber(token) then return '=' .. number end
    rewrite(lock, value, id, token)
  end
  return '+' .. redis.call('PTTL', lock)
end
local function remove(lock, id, seq, tell)
  if not own(redis.call('GET', lock), id, seq) then return 0 end
  redis.call('DEL', lock)
  if tell == '1' then redis.call('PUBLISH', lock, id) end
  return 1
end
local function define()
local function renew(lock, evicted, id, seq, ttlMs)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, seq)
  if not number then
    if redis.call('DEL', evicted) == 1 then return 'x' end
    return value and '-' or '0'
  end
  if kind == 'c' then rewrite(lock, value, id, seq) end
  if redis.call('PEXPIRE', lock, ttlMs, 'GT') == 1 then return '+' .. ttlMs end
  return '+' .. redis.call('PTTL', lock)
end
local function repair(lock, id, seq, ttlMs, rest, fenced)
  if not redis.call('SET', lock, id .. '\0t' .. seq .. '\0' .. rest, 'NX', 'PX', ttlMs) then return 0 end
  if fenced == '1' then raise(seq) end
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
return { renew = renew, repair = repair, evict = evict, look = look }
end
local results = { nowUs }
if ARGV[1] ~= '0' and tonumber(nowUs) > ARGV[1] * 1000 then return { nowUs, '!LATE' } end
local rarely = nil
local key, argument = 2, 2
while argument <= #ARGV do
  local letter = ARGV[argument]
  local call, keys, arguments
  if letter == 'a' then
    call, keys, arguments = acquire, 1, 5
  elseif letter == 'd' then
    call, keys, arguments = remove, 1, 3
  elseif letter == 's' then
    call, keys, arguments = store, 1, 2
  else
    rarely = rarely or define()
    if letter == 'r' then
      call, keys, arguments = rarely.renew, 2, 3
    elseif letter == 'f' then
      call, keys, arguments = rarely.repair, 1, 5
    elseif letter == 'e' then
      call, keys, arguments = rarely.evict, 2, 2
    else
      call, keys, arguments = rarely.look, 1, 0
    end
  end
  local a, b, c, d, e = unpack(ARGV, argument + 1, argument + arguments)
  local done, result
  if keys == 1 then
    done, result = pcall(call, KEYS[key], a, b, c, d, e)
  else
    done, result = pcall(call, KEYS[key], KEYS[key + 1], a, b, c)
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
  argument = argument + arguments + 1
end
return results
`;

/** One call alone: scripts/acquire.lua and what it needs. */
export const acquireScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
local function currentCounter()
  local stored = redis.call('GET', KEYS[1])
  if stored and tonumber(stored) > tonumber(nowUs) then return stored end
  return nowUs
end
local function raise(token)
  local stored = redis.call('GET', KEYS[1])
  if not stored or tonumber(stored) < tonumber(token) then redis.call('SET', KEYS[1], token) end
end
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
local function rewrite(lock, value, id, token)
  local rest = string.sub(value, string.find(value, '\0', #id + 2, true), -1)
  redis.call('SET', lock, id .. '\0t' .. token .. rest, 'KEEPTTL')
  raise(token)
end
local function acquire(lock, id, ttlMs, seq, rest, fenced)
  local state, counter = 't' .. seq, ''
  if fenced == '1' then
    local current = currentCounter()
    local ahead = tonumber(seq) - tonumber(current)
    if ahead <= 0 or ahead > 1000000 then
      state, counter = 'c' .. current, current
    end
  end
  local value = redis.call('SET', lock, id .. '\0' .. state .. '\0' .. rest, 'NX', 'GET', 'PX', ttlMs)
  if not value then
    if fenced == '1' and counter == '' then redis.call('SET', KEYS[1], seq) end
    return '+' .. counter
  end
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(value, id, '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. value
end
return { nowUs, acquire(KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], '1') }
`;

/** One call alone: scripts/store.lua and what it needs. */
export const storeScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
local function currentCounter()
  local stored = redis.call('GET', KEYS[1])
  if stored and tonumber(stored) > tonumber(nowUs) then return stored end
  return nowUs
end
local function raise(token)
  local stored = redis.call('GET', KEYS[1])
  if not stored or tonumber(stored) < tonumber(token) then redis.call('SET', KEYS[1], token) end
end
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
local function rewrite(lock, value, id, token)
  local rest = string.sub(value, string.find(value, '\0', #id + 2, true), -1)
  redis.call('SET', lock, id .. '\0t' .. token .. rest, 'KEEPTTL')
  raise(token)
end
local function store(lock, id, token)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, '')
  if not number then return '-' end
  if number ~= token or kind == 'c' then
    if tonumber(number) >= tonumber(token) then return '=' .. number end
    rewrite(lock, value, id, token)
  end
  return '+' .. redis.call('PTTL', lock)
end
return store(KEYS[2], ARGV[1], ARGV[2])
`;

/** One call alone: scripts/release.lua and what it needs. */
export const releaseScript: string = String.raw`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[1], ARGV[2])
return 1
`;
