-- mark_sent(clock, token, origin, record) → summary, and 1; or 0 if the lease has ended:
-- replaces the record of a lease.
local l = findLease(ARGV[2])
if not l or l.o ~= ARGV[3] then return {summary(), '0'} end
l.record = ARGV[4]
call('HSET', keyPrefix .. 'l', ARGV[2], cmsgpack.pack(l))
addToField(meta, 'version', 1)
return {saveChanges(), '1'}
