-- ack(clock, {token, origin, outcome, lane, at, rank, print, record, hasState, due, gap, slots,
-- strikes, memo}…) → summary, one character each: 1 if the lease has ended, 0 if it was stale. The
-- outcomes 'again', 'later', 'rest' and 'parked' keep the record; any other drops it. due to memo
-- count only if hasState is 1.
local function requeue(o, l, outcome, lane, at, rank, print, record)
  if outcome == 'again' then
    queueRecord(o, lane, 0, record)
  elseif outcome == 'later' then
    queueDelayed(o, lane, at, record)
  elseif outcome == 'rest' then
    queueRevisit(o, print, at, record)
  elseif outcome == 'parked' then
    parkRecord(o, record)
  end
end

local ended = {}
for i = 2, #ARGV, 14 do
  local l = findLease(ARGV[i])
  if l and l.o == ARGV[i + 1] then
    local o = endLease(ARGV[i], l)
    requeue(o, l, ARGV[i + 2], tonumber(ARGV[i + 3]), parseTime(ARGV[i + 4]), tonumber(ARGV[i + 5]), ARGV[i + 6], ARGV[i + 7])
    if ARGV[i + 8] == '1' then setHostState(loadHost(o.fields.H), i + 9) end
    ended[#ended + 1] = '1'
  else
    ended[#ended + 1] = '0'
  end
end
return {saveChanges(), table.concat(ended)}
