-- hold(clock, origin, host, until, dormant) → sum.
local o = meet(ARGV[2], ARGV[3])
set(o, 'e', moment(ARGV[4]))
set(o, 'D', tonumber(ARGV[5]))
touch(o)
return {finish(), ''}
