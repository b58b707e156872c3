-- read_parked(clock, origin, most) → how many records were ever taken out of the origin's parked ones,
-- how many are parked, and the first of them, at most most.
local o = findOrigin(ARGV[2])
if not o then return {0, 0, {}} end
return {getNumber(o, 'w'), getNumber(o, 'g'), call('LRANGE', keyPrefix .. 'k:' .. o.name, 0, ARGV[3] - 1)}
