/** The Lua script as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw`local time, met
local letter = string.byte(ARGV[1])
if letter < 58 then
  time = redis.call('TIME')
  local micros = time[2]
  if #micros < 6 then micros = string.sub('00000', #micros) .. micros end
  local seq = time[1] .. micros
  if seq <= ARGV[1] then
    met = redis.call('SET', KEYS[1], ARGV[2] .. seq .. ARGV[3], 'NX', 'GET', 'PX', ARGV[4])
    if not met then return seq end
  end
  local untilMs, atOnce = string.match(ARGV[1], '^(%d*)%d%d%d(!?)$')
  local shape, common, more = string.match(ARGV[3], '^ %+%d+ (%a,%d+,%d*,)([^%z]*%z[^%z]*)(.*)$')
  letter = 117
  ARGV[1], ARGV[2], ARGV[3], ARGV[4] =
    'u' .. untilMs, common, 'a' .. ARGV[2] .. ARGV[4] .. '\0' .. #atOnce .. '\0' .. shape .. more, nil
elseif letter == 100 and #ARGV == 1 then
  met = redis.call('GET', KEYS[1])
  if not met then return 0 end
  if string.find(met, string.sub(ARGV[1], 2), 1, true) == 1 then
    redis.call('DEL', KEYS[1])
    return 1
  end
  if string.byte(met) ~= 0 then return 0 end
end
local function publish(channel, message)
  if string.byte(channel, -1) == 125 then
    local heard = redis.pcall('SPUBLISH', channel, message)
    if type(heard) == 'number' and heard > 0 then return end
    channel = string.match(channel, '^(.*){')
  end
  if channel and channel ~= '' then redis.call('PUBLISH', channel, message) end
end
local function leaveLine(line, queue, entries, order, id, seq, heir)
  local sub = string.sub
  if sub(line, 33, 34) ~= 'w\0' then return nil end
  local first = redis.call('ZRANGE', order, '0', '1')
  local behind = first[2]
  if first[1] ~= id then return nil end
  local records = redis.call('HMGET', entries, id, behind or id)
  local own, other = records[1], records[2]
  if not own or not other or sub(own, 31, 31) ~= ' ' then return nil end
  if seq ~= '' and sub(own, 1, 17) ~= seq .. ' ' then return 0 end
  time = time or redis.call('TIME')
  local now = time[1] .. sub('00000' .. time[2], -6)
  if #now ~= 16 then return nil end
  if behind then
    local channel = string.match(other, '^ w,%d+,,([^%z]*)', 31)
    if not channel or sub(other, 18, 30) <= now then return nil end
    redis.call('HDEL', entries, id)
    redis.call('ZREM', order, id)
    if behind ~= heir then publish(channel, behind .. '\0' .. sub(other, 1, 16)) end
  else
    redis.call('DEL', queue, entries, order)
  end
  return sub(own, 18, 30) > now and 1 or 0
end
if #ARGV == 1 and letter == 100 then
  local given = ARGV[1]
  local idEnd = string.find(given, '\0', 2, true)
  local left = leaveLine(met, KEYS[1], KEYS[2], KEYS[3], string.sub(given, 2, idEnd - 1), string.sub(given, idEnd + 1, -2))
  if left then return left end
elseif #ARGV == 1 and letter == 98 then
  met = redis.call('GET', KEYS[1])
  local left = met and leaveLine(met, KEYS[1], KEYS[2], KEYS[3], string.match(ARGV[1], '^b([^%z]*)%z(%d+)%z(.*)$'))
  if left then return left end
end
time = time or redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local laterMs = math.ceil(nowUs / 1000)
local lastGiven = nowUs - 1
local spareShare = 8
local lastExpiry, lastLife, ending
local function text(number)
  if number < 1000000 then return string.format('%d', number) end
  return string.format('%d%06d', math.floor(number / 1000000), number % 1000000)
end
local function lifeOf(seq, ttlMs)
  return math.ceil(seq / 1000) + ttlMs
end
local function isLive(record)
  return string.match(record, '^%d+ (%d+)') * 1000 > nowUs
end
local function keepOne(queue, own, ttlMs)
  local value = redis.call('GET', queue)
  if not value or string.sub(value, 1, #own) ~= own then return false end
  local since, life, rest = string.match(value, '^(%+?)(%d+)(.*)$', #own + 1)
  if since == '+' then life = lifeOf(string.match(own, '%z(%d+)'), life) end
  local expiry = laterMs + ttlMs
  if expiry <= life + 0 then return life - laterMs end
  life = text(expiry)
  if redis.pcall('SET', queue, own .. life .. rest, 'PXAT', life).err then
    redis.call('PEXPIREAT', queue, life)
    redis.call('SET', queue, own .. life .. rest, 'PXAT', life)
  end
  return expiry - laterMs
end
local function keep(queue, ttlMs, count, owned)
  local others = {}
  local nextOwn = string.gmatch(owned, '[^%z]+%z%d+ ')
  for place = 1, count do
    local done, left = pcall(keepOne, KEYS[queue + place - 1], nextOwn(), ttlMs)
    if not done or not left then others[#others + 1] = place end
  end
  return others
end
local call, sub, find = redis.call, string.sub, string.find
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
    redis.call('PEXPIREAT', entries, lasts)
    redis.call('HSET', entries, id, rest)
  end
  return expiry - laterMs
end
local function define()
local function seqOf(record)
  return tonumber(string.match(record, '^%d+'))
end
local function expiryOf(record)
  return tonumber(string.match(record, '^%d+ (%d+)'))
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
local function channelOf(record)
  return string.match(record, '^%d+ %d+ %a,%d+,%d*,([^%z]*)')
end
local function onlyOf(value)
  local id, record = string.match(value, '^([^%z]+)%z(.*)$')
  if not id then return nil end
  local seq, ttlMs, rest = string.match(record, '^(%d+) %+(%d+)(.*)$')
  if seq then record = seq .. ' ' .. text(lifeOf(seq, ttlMs)) .. rest end
  return id, record
end
local Line = {}
Line.__index = Line
local function open(queue, entries, order, known)
  local last, lasts, kind, total, held, heldTo, tail =
    string.match(known, '^%z(%d+) (%d+) (%a) ?(%d*) ?(%d*) ?(%d*)%z(.*)$')
  return setmetatable({
    queue = queue,
    entries = entries,
    order = order,
    last = tonumber(last),
    lasts = tonumber(lasts),
    mixed = kind == 'm',
    counted = kind == 'c',
    total = tonumber(total),
    held = tonumber(held),
    heldTo = tonumber(heldTo),
    tail = tail,
  }, Line)
end
function Line:known()
  local line = '\0' .. text(self.last) .. ' ' .. text(self.lasts)
  if self.counted then
    line = line .. ' c ' .. text(self.total) .. ' ' .. text(self.held) .. ' ' .. text(self.heldTo)
  else
    line = line .. (self.mixed and ' m' or ' w')
  end
  return line .. '\0' .. self.tail
end
function Line:save()
  redis.call('SET', self.queue, self:known(), 'PXAT', text(self.lasts))
end
function Line:outlast(expiry, ttlMs)
  if expiry <= self.lasts then return false end
  self.lasts = expiry + math.floor(ttlMs / spareShare)
  redis.call('PEXPIREAT', self.entries, text(self.lasts))
  redis.call('PEXPIREAT', self.order, text(self.lasts))
  return true
end
function Line:nearestBefore(seq)
  return redis.call('ZREVRANGEBYSCORE', self.order, '(' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
end
function Line:writerBefore(seq)
  local twin = redis.call('ZRANGEBYSCORE', self.order, '(-' .. text(seq), '(0', 'LIMIT', 0, 1)[1]
  return twin and string.sub(twin, 2)
end
function Line:firstWriter()
  local found = redis.call('ZREVRANGEBYSCORE', self.order, '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if found[1] then return string.sub(found[1], 2), -tonumber(found[2]) end
  return nil
end
function Line:first()
  return redis.call('ZRANGEBYSCORE', self.order, '(0', '+inf', 'LIMIT', 0, 1)[1]
end
function Line:final()
  return redis.call('ZRANGE', self.order, -1, -1)[1]
end
function Line:countBefore(seq)
  return redis.call('ZCOUNT', self.order, '(0', '(' .. text(seq))
end
function Line:restore()
  local fields = redis.call('HGETALL', self.entries)
  for i = 1, #fields, 2 do
    local id, record = fields[i], fields[i + 1]
    redis.call('ZADD', self.order, text(seqOf(record)), id)
    if self.mixed and modeOf(record) == 'w' then
      redis.call('ZADD', self.order, '-' .. text(seqOf(record)), '\0' .. id)
    end
  end
  if #fields > 0 then redis.call('PEXPIREAT', self.order, text(self.lasts)) end
end
function Line:headSeq()
  local head = redis.call('ZRANGEBYSCORE', self.order, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(head[2])
end
function Line:mark()
  self.head = self:headSeq()
  if not self.head then
    self:restore()
    self.head = self:headSeq()
  end
  if self.mixed then
    local _, seq = self:firstWriter()
    self.writer = seq
  else
    self.writer = self.head
  end
end
function Line:drop(id, record)
  redis.call('HDEL', self.entries, id)
  redis.call('ZREM', self.order, id)
  self.changed = true
  if self.mixed then redis.call('ZREM', self.order, '\0' .. id) end
  if self.counted and record then
    local weight = weightOf(record)
    self.total = self.total - weight
    if seqOf(record) <= self.heldTo then self.held = self.held - weight end
  end
end
function Line:live(id)
  local record = redis.call('HGET', self.entries, id)
  if record and isLive(record) then return record end
  self:drop(id, record)
  return nil
end
function Line:search(find, seq)
  while true do
    local id = find(self, seq)
    if not id then return nil end
    local record = self:live(id)
    if record then return id, record end
  end
end
function Line:tell(id, record, count, weight, nearest, nearestRecord)
  if id == self.asking then return end
  local message = id .. '\0' .. string.match(record, '^%d+')
  if count and count > 0 then
    message = table.concat({ message, text(laterMs), text(count), text(weight), nearest, nearestRecord }, '\0')
  end
  publish(channelOf(record), message)
end
function Line:tellReaders()
  local before = self.writer
  if not before then return end
  local limit = '+inf'
  if self:search(self.firstWriter) then
    local _, seq = self:firstWriter()
    if seq == before then return end
    limit = '(' .. text(seq)
  end
  local run = redis.call('ZRANGEBYSCORE', self.order, '(' .. text(before), limit)
  local count = self:countBefore(before)
  local nearest = self:nearestBefore(before)
  local nearestRecord = nearest and redis.call('HGET', self.entries, nearest)
  for _, id in ipairs(run) do
    local record = self:live(id)
    if record then
      self:tell(id, record, count, count, nearest, nearestRecord)
      count, nearest, nearestRecord = count + 1, id, record
    end
  end
end
function Line:tellOfRoom()
  while true do
    local id = redis.call('ZRANGEBYSCORE', self.order, '(' .. text(self.heldTo), '+inf', 'LIMIT', 0, 1)[1]
    if not id then break end
    local record = self:live(id)
    if record then
      local seq, weight = seqOf(record), weightOf(record)
      if self.held + weight > (permitsOf(record) or 0) then break end
      local nearest = self:nearestBefore(seq)
      local nearestRecord = nearest and redis.call('HGET', self.entries, nearest)
      self:tell(id, record, self:countBefore(seq), self.held, nearest, nearestRecord)
      self.held, self.heldTo = self.held + weight, seq
    end
  end
  self:save()
end
function Line:pruneHolders()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', self.order, '(0', text(self.heldTo))) do self:live(id) end
end
function Line:settle()
  local id, record = self:search(self.first)
  if not id then
    redis.call('DEL', self.queue, self.entries, self.order)
    return false
  end
  if self.counted then
    self:tellOfRoom()
  elseif modeOf(record) == 'r' then
    self:tellReaders()
  elseif seqOf(record) ~= self.head then
    self:tell(id, record)
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
function Line:weightBefore(seq, count, permits)
  local weight = 0
  local near = redis.call('ZRANGEBYSCORE', self.order, '(0', '(' .. text(seq), 'LIMIT', 0, 128)
  for _, id in ipairs(near) do
    local record = redis.call('HGET', self.entries, id)
    if record then weight = weight + weightOf(record) end
  end
  if count <= #near then return weight end
  if seq <= self.heldTo then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', self.order, '(0', '(' .. text(seq), 'LIMIT', 128, -1)) do
      weight = weight + weightOf(redis.call('HGET', self.entries, id))
    end
    return weight
  end
  return math.max(weight + count - #near, permits)
end
function Line:standAgain(record)
  local seq, expiry = seqOf(record), expiryOf(record)
  self:mark()
  if self.counted then self:pruneHolders() end
  local nearest, nearestRecord = self:search(self.nearestBefore, seq)
  local writer, writerRecord = nearest, nearestRecord
  if self.mixed then writer, writerRecord = self:search(self.writerBefore, seq) end
  if self.changed then self:settle() end
  local count = self:countBefore(seq)
  local weight = self.counted and self:weightBefore(seq, count, permitsOf(record) or 0) or count
  return standing(seq, expiry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
local function unfold(queue, entries, order, only, record)
  local seq, permits = seqOf(record), permitsOf(record)
  redis.call('DEL', entries, order)
  redis.call('HSET', entries, only, record)
  redis.call('ZADD', order, text(seq), only)
  local line = { queue = queue, entries = entries, order = order, last = seq, lasts = 0, tail = only }
  if permits then
    local weight = weightOf(record)
    local fits = weight <= permits
    line.counted, line.total, line.held, line.heldTo = true, weight, fits and weight or 0, fits and seq or 0
  else
    line.mixed = modeOf(record) == 'r'
  end
  return setmetatable(line, Line)
end
function Line:mix()
  local writers = redis.call('ZRANGE', self.order, 0, -1, 'WITHSCORES')
  for i = 1, #writers, 2 do
    redis.call('ZADD', self.order, '-' .. text(tonumber(writers[i + 1])), '\0' .. writers[i])
  end
  self.mixed = true
end
function Line:putLast(id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
  local expiry = laterMs + ttlMs
  lastGiven = math.max(lastGiven, self.last) + 1
  local seq = lastGiven
  local mode, own = string.match(entry, '^(%a),(%d+)')
  if mode == 'r' and not self.counted and not self.mixed then self:mix() end
  redis.call('ZADD', self.order, text(seq), id)
  if mode == 'w' and self.mixed then redis.call('ZADD', self.order, '-' .. text(seq), '\0' .. id) end
  self.last, self.tail = seq, id
  if self.counted then
    if self.held == self.total and grants(entry, count, weight, writer) then
      self.held, self.heldTo = self.held + own, seq
    end
    self.total = self.total + own
  end
  redis.call('HSET', self.entries, id, text(seq) .. ' ' .. text(expiry) .. ' ' .. entry)
  self:outlast(math.max(expiry, nearestRecord and expiryOf(nearestRecord) or 0), ttlMs)
  self:save()
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
  local line = unfold(queue, entries, order, only, record)
  return line:putLast(id, ttlMs, entry, 1, weight, only, record, writer, writer and record)
end
local function append(queue, entries, order, id, ttlMs, atOnce, shape, more)
  local entry = shape .. ARGV[2] .. more
  local value = redis.call('GET', queue)
  local only, alone = onlyOf(value)
  if only == id then return standing(seqOf(alone), expiryOf(alone), 0, 0) end
  if only then return appendToOne(queue, entries, order, id, ttlMs, entry, atOnce, only, alone) end
  local line = open(queue, entries, order, value)
  line.asking = id
  local record = redis.call('HGET', entries, id)
  if record and isLive(record) then return line:standAgain(record) end
  assertSameKind(line.counted, entry)
  line:mark()
  if record then line:drop(id, record) end
  local nearest, nearestRecord = line:search(line.final)
  local writer, writerRecord = nearest, nearestRecord
  if line.mixed then writer, writerRecord = line:search(line.writerBefore, line.last + 1) end
  if line.counted and nearest and not grants(entry, 0, line.total, nil) then
    line:pruneHolders()
    line:tellOfRoom()
    nearest, nearestRecord = line:search(line.final)
  end
  if (line.changed or not nearest) and not line:settle() then
    return joinQuickly(queue, entries, order, id, ttlMs, atOnce, shape, more)
  end
  local count = redis.call('HLEN', entries)
  local weight = line.counted and line.total or count
  if atOnce == '1' and not grants(entry, count, weight, writer) then return false end
  return line:putLast(id, ttlMs, entry, count, weight, nearest, nearestRecord, writer, writerRecord)
end
local function bequeath(queue, entries, order, id, seq, heir)
  local removed, value = leaveAlone(queue, id .. '\0' .. (seq == '' and seq or seq .. ' '))
  removed = removed or leaveLine(value, queue, entries, order, id, seq, heir)
  if removed then return removed end
  local record = redis.call('HGET', entries, id)
  if not record or (seq ~= '' and string.match(record, '^%d+') ~= seq) then return 0 end
  local line = open(queue, entries, order, value)
  line.asking = heir
  line:mark()
  line:drop(id, record)
  line:settle()
  return isLive(record) and 1 or 0
end
local function remove(queue, entries, order, id, seq)
  return bequeath(queue, entries, order, id, seq, nil)
end
local function evict(queue, entries, order, evicted, id, seq)
  local only, alone = onlyOf(redis.call('GET', queue) or '')
  local record = only == id and alone or redis.call('HGET', entries, id)
  if remove(queue, entries, order, id, seq) == 0 then return 0 end
  local expiry = text(expiryOf(record))
  redis.call('HSET', evicted, id, string.match(record, '^%d+'))
  redis.call('PEXPIREAT', evicted, expiry, 'NX')
  redis.call('PEXPIREAT', evicted, expiry, 'GT')
  publish(channelOf(record), '\0' .. id .. '\0' .. queue)
  return 1
end
local function renew(queue, entries, order, evicted, id, seq, ttlMs)
  local value = redis.call('GET', queue)
  local record = value and string.byte(value) == 0 and redis.call('HGET', entries, id)
  if record and string.match(record, '^%d+') == seq and isLive(record) then
    local line = open(queue, entries, order, value)
    if line:outlast(laterMs + ttlMs, ttlMs) then line:save() end
  end
  local left = prolongQuickly(queue, entries, id, seq, ttlMs)
  if left then return left end
  remove(queue, entries, order, id, seq)
  if redis.call('HGET', evicted, id) ~= seq then return 0 end
  redis.call('HDEL', evicted, id)
  return -1
end
local function prune(queue, entries, order)
  local value = redis.call('GET', queue)
  if not value then return 0 end
  if string.byte(value) ~= 0 then return 1 end
  local line = open(queue, entries, order, value)
  line:mark()
  return line:settle() and 1 or 0
end
local function list(queue, entries)
  local only, record = onlyOf(redis.call('GET', queue) or '')
  if only then return { only, record } end
  return redis.call('HGETALL', entries)
end
return { append = append, bequeath = bequeath, remove = remove, evict = evict, renew = renew, prune = prune, list = list }
end
local K, match = KEYS, string.match
local words = { [0] = '0', [1] = '1' }
local from = letter == 117 and 3 or 1
local late = from == 3 and math.floor(nowUs / 1000) > tonumber(sub(ARGV[1], 2))
local results = { time[1], time[2] }
local whole, key, plain = nil, 1, true
local before, ttlMs, atOnce, shape, more
for place = from, #ARGV do
  local given = ARGV[place]
  local letter = sub(given, 1, 1)
  local done, result = true, nil
  local name, keys, arguments
  if letter == 'j' or letter == 'a' then
    name, keys, arguments = 'append', 3, '^a([^%z]*)%z(%d+)%z(%d)%z(%a,%d+,%d*,)(.*)$'
    local id
    if letter == 'j' then
      id = sub(given, 2)
    else
      before, ending = given, nil
      id, ttlMs, atOnce, shape, more = match(given, arguments)
    end
    if late then
      done, result = false, 'LATE'
    else
      done, result = pcall(joinQuickly, K[key], K[key + 1], K[key + 2], id, ttlMs, atOnce, shape, more)
    end
    if letter == 'j' and done and result == nil then given = 'a' .. id .. match(before, '%z.*$') end
  elseif letter == 'd' then
    name, keys, arguments = 'remove', 3, '^d([^%z]*)%z(%d*) ?$'
    local line
    done, result, line = pcall(leaveAlone, K[key], sub(given, 2))
    if line then
      done, result = pcall(leaveLine, line, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'b' then
    name, keys, arguments = 'bequeath', 3, '^b([^%z]*)%z(%d+)%z(.*)$'
    local line = met or redis.call('GET', K[key])
    met = nil
    if line then
      done, result = pcall(leaveLine, line, K[key], K[key + 1], K[key + 2], match(given, arguments))
    end
  elseif letter == 'k' then
    name, keys, arguments = 'keep', 1, '^k(%d+)%z(%d+)%z(.*)$'
    local ttlMs, count, owned = match(given, arguments)
    done, result = pcall(keep, key, ttlMs, count, owned)
    keys = keys * count
  elseif letter == 'r' then
    name, keys, arguments = 'renew', 4, '^r([^%z]*)%z(%d+)%z(%d+)$'
    done, result = pcall(prolongQuickly, K[key], K[key + 1], match(given, arguments))
  elseif letter == 'e' then
    name, keys, arguments = 'evict', 4, '^e([^%z]*)%z(%d*)$'
  elseif letter == 'p' then
    name, keys, arguments = 'prune', 3, '^$'
  else
    name, keys, arguments = 'list', 2, '^$'
  end
  if done and result == nil then
    whole = whole or define()
    local list = { unpack(K, key, key + keys - 1) }
    for _, argument in ipairs({ match(given, arguments) }) do list[#list + 1] = argument end
    done, result = pcall(whole[name], unpack(list))
  end
  if not done then
    plain, result = false, '!' .. (type(result) == 'table' and result.err or tostring(result))
  elseif not result or type(result) == 'table' then
    plain = false
  end
  results[#results + 1] = words[result] or result
  key = key + keys
end
return plain and table.concat(results, ' ') or results
`;
