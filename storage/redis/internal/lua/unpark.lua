-- unpark(clock, origin, taken, {lane, rank}…) → sum, 1, or 0 if others were taken
-- out meanwhile, and nothing was done. The first that are parked are queued; those
-- without a lane go behind the others that are parked.
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
