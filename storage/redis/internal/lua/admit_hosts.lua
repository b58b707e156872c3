-- admit_hosts(clock, maxHosts, maxPerDomain, refuseNew, {fingerprint, domain, always}…) → summary, one
-- character each: a admitted, k counted before, c refused because refuseNew is 1, d the domain has
-- maxPerDomain hosts, f the crawl has maxHosts (0: no limit). If always is 1, the host is admitted
-- in any case. The hosts of the whole crawl are in the first partition, so that one call sees both
-- limits. The call may be repeated: a host that it has admitted is known then.
local maxHosts, maxPerDomain, refuseNew, results = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', {}
local hosts = loadHash('i')
hosts.name = '#hosts' -- no origin has this name
for i = 5, #ARGV, 3 do
  local fingerprint, domain, result = ARGV[i], ARGV[i + 1], 'a'
  if isSeen(hosts, fingerprint) then
    result = 'k'
  elseif ARGV[i + 2] ~= '1' then
    local n = maxPerDomain > 0 and tonumber(call('HGET', keyPrefix .. 'i:d', domain)) or 0
    if refuseNew then
      result = 'c'
    elseif maxPerDomain > 0 and n >= maxPerDomain then
      result = 'd'
    elseif maxHosts > 0 and getNumber(hosts, 'c') >= maxHosts then
      result = 'f'
    end
  end
  if result == 'a' then
    call('SADD', bucketKeyOf(hosts, fingerprint), fingerprint)
    call('HINCRBY', keyPrefix .. 'i:d', domain, 1)
    addToField(hosts, 'c', 1)
    if getNumber(hosts, 'c') > maxBucketSize * math.max(1, getNumber(hosts, 'b')) then splitBucket(hosts) end
  end
  results[#results + 1] = result
end
return {saveChanges(), table.concat(results)}
