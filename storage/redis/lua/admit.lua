-- admit(clock, most, per domain, closed, {print, domain, always}…) → sum, fates:
-- counts hosts, by their fingerprints, that were not counted before. All hosts of the
-- crawl are in the first partition, so that one call sees both limits. A host that is
-- offered again is known: the call may be repeated.
local most, per, closed, fates = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', {}
local hosts = object('i')
hosts.name = '#hosts' -- no origin has this name
for i = 5, #ARGV, 3 do
  local print, domain, fate = ARGV[i], ARGV[i + 1], 'a'
  if isSeen(hosts, print) then
    fate = 'k'
  elseif ARGV[i + 2] ~= '1' then
    local n = per > 0 and tonumber(call('HGET', base .. 'i:d', domain)) or 0
    if closed then
      fate = 'c'
    elseif per > 0 and n >= per then
      fate = 'd'
    elseif most > 0 and get(hosts, 'c') >= most then
      fate = 'f'
    end
  end
  if fate == 'a' then
    call('SADD', seenKey(hosts, print), print)
    call('HINCRBY', base .. 'i:d', domain, 1)
    add(hosts, 'c', 1)
    if get(hosts, 'c') > full * math.max(1, get(hosts, 'b')) then split(hosts) end
  end
  fates[#fates + 1] = fate
end
return {finish(), table.concat(fates)}
