-- parked(clock, origin, most) → how many were ever taken out of those that are
-- parked, how many there are, and the first of them.
local o = origin(ARGV[2])
if not o then return {0, 0, {}} end
return {get(o, 'w'), get(o, 'g'), call('LRANGE', base .. 'k:' .. o.name, 0, ARGV[3] - 1)}
