-- Purpose: takes an entry out and tells those who are granted by it.
-- Keys: queue, entries, order
-- Arguments: id, seq
-- Returns: as bequeath.lua

local function remove(queue, entries, order, id, seq)
  return bequeath(queue, entries, order, id, seq, nil)
end
