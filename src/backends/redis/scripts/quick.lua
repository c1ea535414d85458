-- Purpose: the calls that most often are all: an entry that joins an empty queue or a line of writers, one that is alone or
--   the first of such a line and leaves, one that is renewed. What the rest needs would cost these too much.
-- Keys: those of the call
-- Arguments: those of the call
-- Returns: what the call does; nil if the whole of it is needed, and then nothing has changed

local call, sub, find = redis.call, string.sub, string.find

-- The seqs of one script call follow each other: all but the last two digits is written once for a hundred of them.
local hundred, hundredText
local lastDigits = '0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849'
  .. '5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899'

local function seqText(seq)
  local last = seq % 100
  if seq - last ~= hundred then
    hundred = seq - last
    hundredText = text(hundred / 100)
  end
  return hundredText .. sub(lastDigits, 2 * last + 1, 2 * last + 2)
end

-- In a line of writers, behind one that lives.
local function standAgainQuickly(entries, order, id, record)
  local count = redis.call('ZRANK', order, id)
  if not count or count == 0 or not isLive(record) then return nil end
  local ahead = redis.call('ZRANGE', order, count - 1, count - 1)[1]
  local nearest = redis.call('HGET', entries, ahead)
  if not nearest or not isLive(nearest) then return nil end
  local seq, life = string.match(record, '^(%d+) (%d+)')
  return { seq, life, count, count, ahead, nearest, '=', '' }
end

local function joinQuickly(queue, entries, order, id, ttlMs, atOnce, shape, more)
  local given, expiry = lastGiven + 1, laterMs + ttlMs
  local seq = seqText(given)
  if expiry ~= lastExpiry then lastExpiry, lastLife = expiry, text(expiry) end
  local life = lastLife
  ending = ending or ' ' .. life .. ' ' .. shape .. ARGV[2] .. more
  local rest = ending
  local value = met or call('SET', queue, id .. '\0' .. seq .. rest, 'NX', 'GET', 'PXAT', life)
  met = nil
  if not value then
    lastGiven = given
    return seq
  end
  local last, lasts, tail = string.match(value, '^%z(%d+) (%d+) w%z(.*)$')
  if not last or not string.find(shape, '^w,%d+,,') then return nil end
  local found = redis.call('HMGET', entries, id, tail)
  if found[1] then return standAgainQuickly(entries, order, id, found[1]) end
  local nearest = found[2]
  if not nearest or not isLive(nearest) then return nil end
  if atOnce == '1' then return false end
  local count = redis.call('HLEN', entries)
  if redis.call('ZCARD', order) ~= count then return nil end
  lastGiven = math.max(given, last + 1)
  seq = text(lastGiven)
  redis.call('HSET', entries, id, seq .. rest)
  redis.call('ZADD', order, seq, id)
  if expiry > lasts + 0 then
    lasts = text(expiry + math.floor(ttlMs / spareShare))
    redis.call('PEXPIREAT', entries, lasts)
    redis.call('PEXPIREAT', order, lasts)
  end
  redis.call('SET', queue, '\0' .. seq .. ' ' .. lasts .. ' w\0' .. id, 'PXAT', lasts)
  return { seq, life, count, count, tail, nearest, '=', '' }
end

-- Takes out an entry that is alone; own is what its queue begins with. Nil and what the queue is if that is a line.
local function leaveAlone(queue, own)
  local value = met or call('GET', queue)
  met = nil
  if not value then return 0 end
  if find(value, own, 1, true) == 1 then
    call('DEL', queue)
    return 1
  end
  if string.byte(value) ~= 0 then return 0 end
  return nil, value
end

-- Of one that is alone, or in a line whose keys live long enough.
local function prolongQuickly(queue, entries, id, seq, ttlMs)
  local left = keepOne(queue, id .. '\0' .. seq .. ' ', ttlMs)
  if left then return left end
  local value = redis.call('GET', queue)
  local lasts = value and string.match(value, '^%z%d+ (%d+)')
  local expiry = laterMs + ttlMs
  if not lasts or expiry > lasts + 0 then return nil end
  local record = redis.call('HGET', entries, id)
  if not record or string.sub(record, 1, #seq + 1) ~= seq .. ' ' or not isLive(record) then return nil end
  local life, rest = string.match(record, '^(%d+)(.*)$', #seq + 2)
  if expiry <= life + 0 then return life - laterMs end
  rest = seq .. ' ' .. text(expiry) .. rest
  if type(redis.pcall('HSET', entries, id, rest)) == 'table' then
    -- Without memory, as in keep.lua.
    redis.call('PEXPIREAT', entries, lasts)
    redis.call('HSET', entries, id, rest)
  end
  return expiry - laterMs
end
