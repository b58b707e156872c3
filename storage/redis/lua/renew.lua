-- renew(clock, at, ttl, token) → sum, and 1, or 0 if by then the lease ran out or
-- has ended.
local at, ttl, token = moment(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local expires = tonumber(call('ZSCORE', base .. 'o', token))
if not expires or expires <= at then return {sum(), '0'} end
call('ZADD', base .. 'o', at + ttl, token)
add(meta, 'version', 1)
return {finish(), '1'}
