-- Purpose: sets a value, for as long as is said.
-- Keys: key
-- Arguments: value, ttlMs
-- Returns: nothing that matters

if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
