-- host_count(clock, fingerprint, domain) → number of admitted hosts, number of those of the domain, and
-- 1 if the host with the fingerprint is one of them.
local hosts = loadHash('i')
hosts.name = '#hosts'
local n = tonumber(call('HGET', keyPrefix .. 'i:d', ARGV[3])) or 0
return {getNumber(hosts, 'c'), n, isSeen(hosts, ARGV[2]) and 1 or 0}
