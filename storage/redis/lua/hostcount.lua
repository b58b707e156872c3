-- hostcount(clock, print, domain) → hosts counted, those of the domain, and 1 if the
-- host of the fingerprint is one of them.
local hosts = object('i')
hosts.name = '#hosts'
local n = tonumber(call('HGET', base .. 'i:d', ARGV[3])) or 0
return {get(hosts, 'c'), n, isSeen(hosts, ARGV[2]) and 1 or 0}
