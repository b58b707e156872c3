-- unpark(clock, origin, taken, {lane, rank}…) → summary, and 1; or 0, without a change, if more records
-- than taken were ever taken out of the parked ones. Takes the first parked records in order: a record
-- with a lane is queued there, one with an empty lane goes to the tail of the parked ones.
local o = findOrigin(ARGV[2])
if not o or getNumber(o, 'w') ~= tonumber(ARGV[3]) then return {summary(), '0'} end
local key = keyPrefix .. 'k:' .. o.name
for i = 4, #ARGV, 2 do
  local record = call('LPOP', key)
  if not record then break end
  addToField(o, 'w', 1)
  if ARGV[i] == '' then
    call('RPUSH', key, record)
  else
    queueRecord(o, tonumber(ARGV[i]), tonumber(ARGV[i + 1]), record)
    addToField(o, 'g', -1)
    addToField(meta, 'parked', -1)
  end
end
if getNumber(o, 'g') == 0 then call('SREM', keyPrefix .. 'k', o.name) end
markChanged(o)
return {saveChanges(), '1'}
