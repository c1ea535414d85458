/** The Lua script as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw`local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
local laterMs = math.ceil(nowUs / 1000)
local lastGiven = 0
local function text(number)
  if number < 1000000 then return string.format('%d', number) end
  return string.format('%d%06d', math.floor(number / 1000000), number % 1000000)
end
local function nextSeq(last)
  lastGiven = math.max(nowUs, last + 1, lastGiven + 1)
  return lastGiven
end
local function expiryOf(record)
  return tonumber(string.match(record, '^%d+ (%d+)'))
end
local function isLive(record)
  return expiryOf(record) > nowMs
end
local function putAlone(queue, id, ttlMs, entry)
  local seq, expiry = text(nextSeq(0)), text(laterMs + ttlMs)
  if redis.call('SET', queue, id .. '\0' .. seq .. ' ' .. expiry .. ' ' .. entry, 'NX', 'PXAT', expiry) then
    return seq
  end
  return nil
end
local function recordAlone(value, id)
  if value and string.sub(value, 1, #id + 1) == id .. '\0' then return string.sub(value, #id + 2) end
  return nil
end
local function removeAlone(queue, id, seq)
  local value = redis.call('GET', queue)
  if not value then return 0 end
  local record = recordAlone(value, id)
  if not record then return nil end
  if seq ~= '' and string.match(record, '^%d+') ~= seq then return 0 end
  redis.call('DEL', queue)
  return isLive(record) and 1 or 0
end
local function renewAlone(queue, id, seq, ttlMs)
  local record = recordAlone(redis.call('GET', queue), id)
  if not record or string.match(record, '^%d+') ~= seq or not isLive(record) then return nil end
  local expiry = laterMs + ttlMs
  if expiry <= expiryOf(record) then return expiryOf(record) - laterMs end
  local renewed = seq .. ' ' .. text(expiry) .. string.match(record, '^%d+ %d+( .*)$')
  redis.call('SET', queue, id .. '\0' .. renewed, 'PXAT', text(expiry))
  return expiry - laterMs
end
local function define()
local function seqOf(record)
  return tonumber(string.match(record, '^%d+'))
end
local function modeOf(record)
  return string.match(record, '^%d+ %d+ (%a)')
end
local function weightOf(record)
  return tonumber(string.match(record, '^%d+ %d+ %a,(%d+)'))
end
local function permitsOf(record)
  return tonumber(string.match(record, '^%d+ %d+ %a,%d+,(%d+)'))
end
local function publish(record, message)
  local channel = string.match(record, '^%d+ %d+ %a,%d+,%d*,([^%z]*)')
  if channel ~= '' then redis.call('PUBLISH', channel, message) end
end
local function open(queue, entries, order, known)
  local last, mixed, total, held, heldTo = string.match(known, '^%z(%d+) (%d) ?(%d*) ?(%d*) ?(%d*)$')
  return {
    queue = queue,
    entries = entries,
    order = order,
    last = tonumber(last),
    mixed = mixed == '1',
    counted = total ~= '',
    total = tonumber(total),
    held = tonumber(held),
    heldTo = tonumber(heldTo),
  }
end
local function known(q)
  local line = '\0' .. text(q.last) .. (q.mixed and ' 1' or ' 0')
  if not q.counted then return line end
  return line .. ' ' .. text(q.total) .. ' ' .. text(q.held) .. ' ' .. text(q.heldTo)
end
local function save(q)
  redis.call('SET', q.queue, known(q), 'KEEPTTL')
end
local function outlive(q, expiry)
  if redis.call('PEXPIREAT', q.queue, text(expiry), 'GT') == 0 then return end
  redis.call('PEXPIREAT', q.entries, text(expiry))
  redis.call('PEXPIREAT', q.order, text(expiry))
end
local function nearestBefore(q, seq)
  return redis.call('ZREVRANGEBYSCORE', q.order, '(' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
end
local function writerBefore(q, seq)
  local twin = redis.call('ZRANGEBYSCORE', q.order, '(-' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
  return twin and string.sub(twin, 2)
end
local function firstWriter(q)
  local found = redis.call('ZREVRANGEBYSCORE', q.order, '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if found[1] then return string.sub(found[1], 2), -tonumber(found[2]) end
  return nil
end
local function countBefore(q, seq)
  return redis.call('ZCOUNT', q.order, '(0', '(' .. text(seq))
end
local function restore(q)
  local fields = redis.call('HGETALL', q.entries)
  for i = 1, #fields, 2 do
    local id, record = fields[i], fields[i + 1]
    redis.call('ZADD', q.order, text(seqOf(record)), id)
    if q.mixed and modeOf(record) == 'w' then
      redis.call('ZADD', q.order, '-' .. text(seqOf(record)), '\0' .. id)
    end
  end
  if #fields > 0 then redis.call('PEXPIRE', q.order, redis.call('PTTL', q.queue)) end
end
local function headSeq(q)
  local head = redis.call('ZRANGEBYSCORE', q.order, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(head[2])
end
local function mark(q)
  q.head = headSeq(q)
  if not q.head then
    restore(q)
    q.head = headSeq(q)
  end
  if q.mixed then
    local _, seq = firstWriter(q)
    q.writer = seq
  else
    q.writer = q.head
  end
end
local function drop(q, id, record)
  redis.call('HDEL', q.entries, id)
  redis.call('ZREM', q.order, id)
  q.changed = true
  if q.mixed then redis.call('ZREM', q.order, '\0' .. id) end
  if q.counted and record then
    local weight = weightOf(record)
    q.total = q.total - weight
    if seqOf(record) <= q.heldTo then q.held = q.held - weight end
  end
end
local function live(q, id)
  local record = redis.call('HGET', q.entries, id)
  if record and isLive(record) then return record end
  drop(q, id, record)
  return nil
end
local function search(q, find, seq)
  while true do
    local id = find(q, seq)
    if not id then return nil end
    local record = live(q, id)
    if record then return id, record end
  end
end
local function first(q)
  return redis.call('ZRANGEBYSCORE', q.order, '(0', '+inf', 'LIMIT', 0, 1)[1]
end
local function final(q)
  return redis.call('ZREVRANGEBYSCORE', q.order, '+inf', '(0', 'LIMIT', 0, 1)[1]
end
local function tell(q, id, record, count, weight, nearest, nearestRecord)
  if id == q.asking then return end
  local message = id .. '\0' .. string.match(record, '^%d+')
  if count and count > 0 then
    message = table.concat({ message, text(laterMs), text(count), text(weight), nearest, nearestRecord }, '\0')
  end
  publish(record, message)
end
local function tellReaders(q)
  local before = q.writer
  if not before then return end
  local limit = '+inf'
  if search(q, firstWriter) then
    local _, seq = firstWriter(q)
    if seq == before then return end
    limit = '(' .. text(seq)
  end
  local run = redis.call('ZRANGEBYSCORE', q.order, '(' .. text(before), limit)
  local count = countBefore(q, before)
  local nearest = nearestBefore(q, before)
  local nearestRecord = nearest and redis.call('HGET', q.entries, nearest)
  for _, id in ipairs(run) do
    local record = live(q, id)
    if record then
      tell(q, id, record, count, count, nearest, nearestRecord)
      count, nearest, nearestRecord = count + 1, id, record
    end
  end
end
local function tellOfRoom(q)
  while true do
    local id = redis.call('ZRANGEBYSCORE', q.order, '(' .. text(q.heldTo), '+inf', 'LIMIT', 0, 1)[1]
    if not id then break end
    local record = live(q, id)
    if record then
      local seq, weight = seqOf(record), weightOf(record)
      if q.held + weight > (permitsOf(record) or 0) then break end
      local nearest = nearestBefore(q, seq)
      local nearestRecord = nearest and redis.call('HGET', q.entries, nearest)
      tell(q, id, record, countBefore(q, seq), q.held, nearest, nearestRecord)
      q.held, q.heldTo = q.held + weight, seq
    end
  end
  save(q)
end
local function pruneHolders(q)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', q.order, '(0', text(q.heldTo))) do live(q, id) end
end
local function settle(q)
  local id, record = search(q, first)
  if not id then
    redis.call('DEL', q.queue, q.entries, q.order)
    return false
  end
  if q.counted then
    tellOfRoom(q)
  elseif modeOf(record) == 'r' then
    tellReaders(q)
  elseif seqOf(record) ~= q.head then
    tell(q, id, record)
  end
  return true
end
local function standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
  if writer and writer == nearest then writer, writerRecord = '=', '' end
  return {
    text(seq),
    text(expiry),
    count,
    weight,
    nearest or '',
    nearestRecord or '',
    writer or '',
    writerRecord or '',
  }
end
local function grants(entry, count, weight, writer)
  local mode, own, permits = string.match(entry, '^(%a),(%d+),(%d*)')
  if permits ~= '' then return weight + own <= tonumber(permits) end
  if mode == 'r' then return not writer end
  return count == 0
end
local function weightBefore(q, seq, count, permits)
  local weight = 0
  local near = redis.call('ZRANGEBYSCORE', q.order, '(0', '(' .. text(seq), 'LIMIT', 0, 128)
  for _, id in ipairs(near) do
    local record = redis.call('HGET', q.entries, id)
    if record then weight = weight + weightOf(record) end
  end
  if count <= #near then return weight end
  if seq <= q.heldTo then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', q.order, '(0', '(' .. text(seq), 'LIMIT', 128, -1)) do
      weight = weight + weightOf(redis.call('HGET', q.entries, id))
    end
    return weight
  end
  return math.max(weight + count - #near, permits)
end
local function standAgain(q, id, record)
  local seq, expiry = seqOf(record), expiryOf(record)
  mark(q)
  if q.counted then pruneHolders(q) end
  local nearest, nearestRecord = search(q, nearestBefore, seq)
  local writer, writerRecord = nearest, nearestRecord
  if q.mixed then writer, writerRecord = search(q, writerBefore, seq) end
  if q.changed then settle(q) end
  local count = countBefore(q, seq)
  local weight = q.counted and weightBefore(q, seq, count, permitsOf(record) or 0) or count
  return standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
local function unfold(queue, entries, order, only, record)
  local seq, permits = seqOf(record), permitsOf(record)
  local expiry = text(expiryOf(record))
  redis.call('DEL', entries, order)
  redis.call('HSET', entries, only, record)
  redis.call('PEXPIREAT', entries, expiry)
  redis.call('ZADD', order, text(seq), only)
  redis.call('PEXPIREAT', order, expiry)
  local q = { queue = queue, entries = entries, order = order, last = seq, mixed = false, counted = permits ~= nil }
  if permits then
    local weight = weightOf(record)
    local fits = weight <= permits
    q.total, q.held, q.heldTo = weight, fits and weight or 0, fits and seq or 0
  elseif modeOf(record) == 'r' then
    q.mixed = true
  end
  return q
end
local function mix(q)
  local writers = redis.call('ZRANGE', q.order, 0, -1, 'WITHSCORES')
  for i = 1, #writers, 2 do
    redis.call('ZADD', q.order, '-' .. text(tonumber(writers[i + 1])), '\0' .. writers[i])
  end
  q.mixed = true
end
local function putLast(q, id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
  local seq, expiry = nextSeq(q.last), laterMs + ttlMs
  local mode, own = string.match(entry, '^(%a),(%d+)')
  if mode == 'r' and not q.counted and not q.mixed then mix(q) end
  redis.call('ZADD', q.order, text(seq), id)
  if mode == 'w' and q.mixed then redis.call('ZADD', q.order, '-' .. text(seq), '\0' .. id) end
  q.last = seq
  if q.counted then
    if q.held == q.total and grants(entry, count, weight, writer) then
      q.held, q.heldTo = q.held + own, seq
    end
    q.total = q.total + own
  end
  redis.call('HSET', q.entries, id, text(seq) .. ' ' .. text(expiry) .. ' ' .. entry)
  save(q)
  outlive(q, expiry)
  return standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
local function assertSameKind(counted, entry)
  if counted ~= (string.match(entry, '^%a,%d+,(%d*)') ~= '') then
    error('MIXED the queue has entries of the other kind', 0)
  end
end
local function appendToOne(queue, entries, order, id, ttlMs, entry, atOnce, only, record)
  assertSameKind(permitsOf(record) ~= nil, entry)
  local weight = weightOf(record)
  local writer = modeOf(record) == 'w' and only or nil
  if atOnce == '1' and not grants(entry, 1, weight, writer) then return false end
  local q = unfold(queue, entries, order, only, record)
  return putLast(q, id, ttlMs, entry, 1, weight, only, record, writer, writer and record)
end
local function append(queue, entries, order, id, ttlMs, entry, atOnce)
  local value = redis.call('GET', queue)
  if not value then return putAlone(queue, id, ttlMs, entry) end
  local only, alone = string.match(value, '^([^%z]+)%z(.*)$')
  if only then
    if not isLive(alone) then
      redis.call('DEL', queue)
      return putAlone(queue, id, ttlMs, entry)
    end
    if only == id then return standing(seqOf(alone), expiryOf(alone), 0, 0) end
    return appendToOne(queue, entries, order, id, ttlMs, entry, atOnce, only, alone)
  end
  local q = open(queue, entries, order, value)
  q.asking = id
  local record = redis.call('HGET', entries, id)
  if record and isLive(record) then return standAgain(q, id, record) end
  assertSameKind(q.counted, entry)
  mark(q)
  if record then drop(q, id, record) end
  local nearest, nearestRecord = search(q, final)
  local writer, writerRecord = nearest, nearestRecord
  if q.mixed then writer, writerRecord = search(q, writerBefore, q.last + 1) end
  if q.counted and nearest and not grants(entry, 0, q.total, nil) then
    pruneHolders(q)
    tellOfRoom(q)
    nearest, nearestRecord = search(q, final)
  end
  if (q.changed or not nearest) and not settle(q) then return putAlone(queue, id, ttlMs, entry) end
  local count = redis.call('HLEN', entries)
  local weight = q.counted and q.total or count
  if atOnce == '1' and not grants(entry, count, weight, writer) then return false end
  return putLast(q, id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
local function remove(queue, entries, order, id, seq)
  local removed = removeAlone(queue, id, seq)
  if removed then return removed end
  local value = redis.call('GET', queue)
  if string.sub(value, 1, 1) ~= '\0' then return 0 end
  local record = redis.call('HGET', entries, id)
  if not record or (seq ~= '' and string.match(record, '^%d+') ~= seq) then return 0 end
  local q = open(queue, entries, order, value)
  mark(q)
  drop(q, id, record)
  settle(q)
  return isLive(record) and 1 or 0
end
local function evict(queue, entries, order, evicted, id, seq)
  local record = recordAlone(redis.call('GET', queue), id) or redis.call('HGET', entries, id)
  if remove(queue, entries, order, id, seq) == 0 then return 0 end
  local expiry = text(expiryOf(record))
  redis.call('HSET', evicted, id, string.match(record, '^%d+'))
  redis.call('PEXPIREAT', evicted, expiry, 'NX')
  redis.call('PEXPIREAT', evicted, expiry, 'GT')
  publish(record, '\0' .. id .. '\0' .. queue)
  return 1
end
local function renewInLine(queue, entries, order, id, seq, ttlMs)
  local value = redis.call('GET', queue)
  local record = value and string.sub(value, 1, 1) == '\0' and redis.call('HGET', entries, id)
  if not record or string.match(record, '^%d+') ~= seq or not isLive(record) then return nil end
  local expiry = laterMs + ttlMs
  if expiry <= expiryOf(record) then return expiryOf(record) - laterMs end
  redis.call('HSET', entries, id, seq .. ' ' .. text(expiry) .. string.match(record, '^%d+ %d+( .*)$'))
  outlive({ queue = queue, entries = entries, order = order }, expiry)
  return expiry - laterMs
end
local function renew(queue, entries, order, evicted, id, seq, ttlMs)
  local left = renewAlone(queue, id, seq, ttlMs) or renewInLine(queue, entries, order, id, seq, ttlMs)
  if left then return left end
  remove(queue, entries, order, id, seq)
  if redis.call('HGET', evicted, id) ~= seq then return 0 end
  redis.call('HDEL', evicted, id)
  return -1
end
local function prune(queue, entries, order)
  local value = redis.call('GET', queue)
  if not value then return 0 end
  local alone = string.match(value, '^[^%z]+%z(.*)$')
  if alone then return isLive(alone) and 1 or 0 end
  local q = open(queue, entries, order, value)
  mark(q)
  return settle(q) and 1 or 0
end
local function list(queue, entries)
  local only, record = string.match(redis.call('GET', queue) or '', '^([^%z]+)%z(.*)$')
  if only then return { only, record } end
  return redis.call('HGETALL', entries)
end
return { append = append, remove = remove, evict = evict, renew = renew, prune = prune, list = list }
end
local whole = nil
local function run(call, keys, key, arguments, argument)
  local given = {}
  for i = 0, keys - 1 do given[#given + 1] = KEYS[key + i] end
  for i = 1, arguments do given[#given + 1] = ARGV[argument + i] end
  whole = whole or define()
  return whole[call](unpack(given))
end
local function begin(call, key, argument)
  if call == 'append' then return putAlone(KEYS[key], ARGV[argument + 1], ARGV[argument + 2], ARGV[argument + 3]) end
  if call == 'remove' then return removeAlone(KEYS[key], ARGV[argument + 1], ARGV[argument + 2]) end
  if call == 'renew' then return renewAlone(KEYS[key], ARGV[argument + 1], ARGV[argument + 2], ARGV[argument + 3]) end
  return nil
end
local function perform(call, keys, key, arguments, argument)
  local result = begin(call, key, argument)
  if result == nil then result = run(call, keys, key, arguments, argument) end
  return result
end
local late = ARGV[1] ~= '0' and nowMs > tonumber(ARGV[1])
local results = { text(nowUs) }
local key, argument = 1, 2
while argument <= #ARGV do
  local letter = ARGV[argument]
  local call, keys, arguments
  if letter == 'a' then
    call, keys, arguments = 'append', 3, 4
  elseif letter == 'd' then
    call, keys, arguments = 'remove', 3, 2
  elseif letter == 'r' then
    call, keys, arguments = 'renew', 4, 3
  elseif letter == 'e' then
    call, keys, arguments = 'evict', 4, 2
  elseif letter == 'p' then
    call, keys, arguments = 'prune', 3, 0
  else
    call, keys, arguments = 'list', 2, 0
  end
  local done, result = true, '!LATE'
  if not late or letter ~= 'a' then
    done, result = pcall(perform, call, keys, key, arguments, argument)
  end
  if not done then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  results[#results + 1] = result
  key = key + keys
  argument = argument + arguments + 1
end
return results
`;
