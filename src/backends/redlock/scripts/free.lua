-- Purpose: frees a lock that is known to the last byte, and tells those who wait; a script of its own.
-- Keys: lock
-- Arguments: value, id
-- Returns: 1 if it had this value, else 0

local channel = 'holdfast:redlock:free:'
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', channel .. KEYS[1], ARGV[2])
return 1
