-- list_seen(clock, origin, i) → the number of buckets of the origin's seen set, and the fingerprints in
-- bucket i.
local o = findOrigin(ARGV[2])
if not o then return {0, {}} end
return {math.max(1, getNumber(o, 'b')), call('SMEMBERS', bucketKey(o, ARGV[3]))}
