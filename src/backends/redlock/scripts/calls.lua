-- Purpose: runs the calls of one tick, one after the other; one that fails does not fail its neighbours.
-- Keys: the counter of this node, then those of each call, in turn
-- Arguments: until when (ms of this node's clock, 0: for ever) they may still begin; the letters of all calls; then the
--   arguments of each call, in turn
-- Returns: the time in µs, then the result of each call; "!" and a text for one that failed; after the time only "*" if all
--   results are "+", or "!LATE" if they came too late

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
