-- revive(clock, origin, taken, {lane, rank}…) → sum, 1, or 0 if others were taken
-- out meanwhile, and nothing was done. The first that are parked are queued; those
-- without a lane go behind the others that are parked.
local o = origin(ARGV[2])
if not o or get(o, 'w') ~= tonumber(ARGV[3]) then return {sum(), '0'} end
local key = base .. 'k:' .. o.name
for i = 4, #ARGV, 2 do
  local record = call('LPOP', key)
  if not record then break end
  add(o, 'w', 1)
  if ARGV[i] == '' then
    call('RPUSH', key, record)
  else
    put(o, tonumber(ARGV[i]), tonumber(ARGV[i + 1]), record)
    add(o, 'g', -1)
    add(meta, 'parked', -1)
  end
end
if get(o, 'g') == 0 then call('SREM', base .. 'k', o.name) end
touch(o)
return {finish(), '1'}
