-- renew_lease(clock, at, ttl, token) → summary, and 1; or 0 if the lease has ended, or has expired by
-- at: lets the lease run for ttl from at.
local at, ttl, token = parseTime(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local expires = tonumber(call('ZSCORE', keyPrefix .. 'o', token))
if not expires or expires <= at then return {summary(), '0'} end
call('ZADD', keyPrefix .. 'o', at + ttl, token)
addToField(meta, 'version', 1)
return {saveChanges(), '1'}
