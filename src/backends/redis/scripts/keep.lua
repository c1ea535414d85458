-- Purpose: extends the lives of entries that are alone in their queues, as most that are renewed are; never shortens one.
-- Keys: queue
-- Arguments: ttlMs, count, owned
-- Returns: which of them, counted from 1, are not there or not alone: they need the whole of a renewal
--
-- There is a queue for each entry, the first at this place among the keys. Owned is what the value of each queue begins with
-- if its entry is alone there: "<id>\0<seq> ".

-- What is left of its life in ms; false if it is not there, or not alone.
local function keepOne(queue, own, ttlMs)
  local value = redis.call('GET', queue)
  if not value or string.sub(value, 1, #own) ~= own then return false end
  local since, life, rest = string.match(value, '^(%+?)(%d+)(.*)$', #own + 1)
  if since == '+' then life = lifeOf(string.match(own, '%z(%d+)'), life) end
  local expiry = laterMs + ttlMs
  if expiry <= life + 0 then return life - laterMs end
  life = text(expiry)
  if redis.pcall('SET', queue, own .. life .. rest, 'PXAT', life).err then
    -- A server without memory refuses a script's first write if it may need some, but not one that follows another.
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
