-- seenset(clock, origin, i) → how many sets the seen set of the origin has, and the
-- fingerprints of one.
local o = origin(ARGV[2])
if not o then return {0, {}} end
return {math.max(1, get(o, 'b')), call('SMEMBERS', setKey(o, ARGV[3]))}
