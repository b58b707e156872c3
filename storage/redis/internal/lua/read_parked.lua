-- read_parked(clock, origin, most) → how many were ever taken out of those that are
-- parked, how many there are, and the first of them.
local o = findOrigin(ARGV[2])
if not o then return {0, 0, {}} end
return {getNumber(o, 'w'), getNumber(o, 'g'), call('LRANGE', keyPrefix .. 'k:' .. o.name, 0, ARGV[3] - 1)}
