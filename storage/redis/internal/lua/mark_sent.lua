-- mark_sent(clock, token, origin, record) → sum, and 1, or 0 if the lease was given away, or
-- has ended: the record of what is leased, as it is to be from now on.
local l = findLease(ARGV[2])
if not l or l.o ~= ARGV[3] then return {summary(), '0'} end
l.record = ARGV[4]
call('HSET', keyPrefix .. 'l', ARGV[2], cmsgpack.pack(l))
addToField(meta, 'version', 1)
return {saveChanges(), '1'}
