/** The Lua scripts as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
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
local function keepCounter()
  if raised then redis.call('SET', KEYS[1], stored) end
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
local function taken(lock, was, value)
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(was, string.match(value, '^[^%z]*'), '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. was
end
local function channelOf(lock)
  return 'holdfast:redlock:free:' .. lock
end
local function rewrite(lock, value, id, token)
  local rest = string.sub(value, string.find(value, '\0', #id + 2, true), -1)
  redis.call('SET', lock, id .. '\0t' .. token .. rest, 'KEEPTTL')
  raise(token)
end
local function acquire(lock, value, ttlMs)
  local seq = string.match(value, '^[^%z]*%zt(%d*)%z')
  local known = counter()
  if seq == '' then
    seq = string.format('%.0f', known + 1)
    value = string.gsub(value, '%zt%z', '\0t' .. seq .. '\0', 1)
    local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
    if was then return taken(lock, was, value) end
    raise(seq)
    return '+t' .. seq
  end
  local ahead = tonumber(seq) - tonumber(known)
  local fits = ahead > 0 and ahead <= 1000000
  if not fits then value = string.gsub(value, '%zt%d+%z', '\0c' .. known .. '\0', 1) end
  local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
  if was then return taken(lock, was, value) end
  if not fits then return '+' .. known end
  raise(seq)
  return '+'
end
local function take(lock, value, ttlMs)
  local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
  if was then return taken(lock, was, value) end
  return '+'
end
local function store(lock, id, token)
  local value = redis.call('GET', lock)
  local number, kind = own(value, id, '')
  if not number then return '-' end
  if number ~= token or kind == 'c' then
    if tonumber(number) >= tonumber(token) then return '=' .. kind .. number end
    rewrite(lock, value, id, token)
  end
  return '+' .. redis.call('PTTL', lock)
end
local function remove(lock, id, seq, tell)
  if not own(redis.call('GET', lock), id, seq) then return '-' end
  redis.call('DEL', lock)
  if tell == '1' then redis.call('PUBLISH', channelOf(lock), id) end
  return '+'
end
local function release(lock, value)
  if redis.call('GET', lock) ~= value then
    local id, seq = string.match(value, '^([^%z]*)%zt(%d+)%z')
    return remove(lock, id, seq, '1')
  end
  redis.call('DEL', lock)
  redis.call('PUBLISH', channelOf(lock), string.match(value, '^[^%z]*'))
  return '+'
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
  if not redis.call('SET', lock, id .. '\0t' .. seq .. '\0' .. rest, 'NX', 'PX', ttlMs) then return '-' end
  if fenced == '1' then raise(seq) end
  return '+'
end
local function evict(lock, evicted, id, seq)
  if not own(redis.call('GET', lock), id, seq) then return '-' end
  local leftMs = redis.call('PTTL', lock)
  if leftMs > 0 then redis.call('SET', evicted, '1', 'PX', leftMs) end
  redis.call('DEL', lock)
  redis.call('PUBLISH', channelOf(lock), id)
  return '+'
end
local function look(lock)
  local value = redis.call('GET', lock)
  if not value then return '' end
  return redis.call('PTTL', lock) .. ' ' .. value
end
return { renew = renew, repair = repair, evict = evict, look = look }
end
if ARGV[1] ~= '0' and tonumber(nowUs) > ARGV[1] * 1000 then return { nowUs, '!LATE' } end
local results, plain = { nowUs }, true
local rarely = nil
local locks, words, letters = KEYS, ARGV, ARGV[2]
local key, word = 2, 3
for n = 1, #letters do
  local letter = string.sub(letters, n, n)
  local call, keys, arguments
  if letter == 'a' then
    call, keys, arguments = acquire, 1, 2
  elseif letter == 't' then
    call, keys, arguments = take, 1, 2
  elseif letter == 'g' then
    call, keys, arguments = release, 1, 1
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
  local done, result
  if arguments < 3 and keys == 1 then
    done, result = pcall(call, locks[key], words[word], words[word + 1])
  elseif keys == 1 then
    done, result = pcall(call, locks[key], unpack(words, word, word + arguments - 1))
  else
    done, result = pcall(call, locks[key], locks[key + 1], unpack(words, word, word + arguments - 1))
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  if result ~= '+' then plain = false end
  results[n + 1] = result
  key = key + keys
  word = word + arguments
end
keepCounter()
if plain then return { nowUs, '*' } end
return results
`;

/** One call alone: scripts/acquire.lua and what it needs. */
export const acquireScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
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
local function keepCounter()
  if raised then redis.call('SET', KEYS[1], stored) end
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
local function taken(lock, was, value)
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(was, string.match(value, '^[^%z]*'), '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. was
end
local function channelOf(lock)
  return 'holdfast:redlock:free:' .. lock
end
local function rewrite(lock, value, id, token)
  local rest = string.sub(value, string.find(value, '\0', #id + 2, true), -1)
  redis.call('SET', lock, id .. '\0t' .. token .. rest, 'KEEPTTL')
  raise(token)
end
local function acquire(lock, value, ttlMs)
  local seq = string.match(value, '^[^%z]*%zt(%d*)%z')
  local known = counter()
  if seq == '' then
    seq = string.format('%.0f', known + 1)
    value = string.gsub(value, '%zt%z', '\0t' .. seq .. '\0', 1)
    local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
    if was then return taken(lock, was, value) end
    raise(seq)
    return '+t' .. seq
  end
  local ahead = tonumber(seq) - tonumber(known)
  local fits = ahead > 0 and ahead <= 1000000
  if not fits then value = string.gsub(value, '%zt%d+%z', '\0c' .. known .. '\0', 1) end
  local was = redis.call('SET', lock, value, 'NX', 'GET', 'PX', ttlMs)
  if was then return taken(lock, was, value) end
  if not fits then return '+' .. known end
  raise(seq)
  return '+'
end
local result = acquire(KEYS[2], ARGV[1], ARGV[2])
keepCounter()
return { nowUs, result }
`;

/** One call alone: scripts/store.lua and what it needs. */
export const storeScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
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
local function keepCounter()
  if raised then redis.call('SET', KEYS[1], stored) end
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
local function taken(lock, was, value)
  local leftMs = redis.call('PTTL', lock)
  local number, kind = own(was, string.match(value, '^[^%z]*'), '')
  if number then return '=' .. kind .. number .. ' ' .. leftMs end
  return '-' .. leftMs .. ' ' .. was
end
local function channelOf(lock)
  return 'holdfast:redlock:free:' .. lock
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
    if tonumber(number) >= tonumber(token) then return '=' .. kind .. number end
    rewrite(lock, value, id, token)
  end
  return '+' .. redis.call('PTTL', lock)
end
local result = store(KEYS[2], ARGV[1], ARGV[2])
keepCounter()
return result
`;

/** One call alone: scripts/free.lua and what it needs. */
export const freeScript: string = String.raw`local channel = 'holdfast:redlock:free:'
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', channel .. KEYS[1], ARGV[2])
return 1
`;

/** One call alone: scripts/ours.lua and what it needs. */
export const oursScript: string = String.raw`local ours = {}
for _, key in ipairs(KEYS) do
  local head = redis.pcall('GETRANGE', key, 0, 1023)
  if type(head) == 'string' and string.find(head, '^[^%z]*%z[ct]%d+%z') then ours[#ours + 1] = key end
end
return ours
`;
