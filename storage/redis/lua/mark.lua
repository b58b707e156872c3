-- mark(clock, token, origin, record) → sum, and 1, or 0 if the lease was given away, or
-- has ended: the record of what is leased, as it is to be from now on.
local l = findLease(ARGV[2])
if not l or l.o ~= ARGV[3] then return {sum(), '0'} end
l.record = ARGV[4]
call('HSET', base .. 'l', ARGV[2], cmsgpack.pack(l))
add(meta, 'version', 1)
return {finish(), '1'}
