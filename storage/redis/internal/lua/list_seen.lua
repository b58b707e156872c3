-- list_seen(clock, origin, i) → how many sets the seen set of the origin has, and the
-- fingerprints of one.
local o = findOrigin(ARGV[2])
if not o then return {0, {}} end
return {math.max(1, getNumber(o, 'b')), call('SMEMBERS', bucketKey(o, ARGV[3]))}
