-- add(clock, most, {origin, host, lane, rank, print, record}…) → sum, fates: queues
-- what the seen set does not hold. An empty fingerprint passes by it.
local most, fates = tonumber(ARGV[2]), {}
for i = 3, #ARGV, 6 do
  local o, print = meet(ARGV[i], ARGV[i + 1]), ARGV[i + 4]
  local fate = 'a'
  if print ~= '' then
    if isSeen(o, print) then
      fate = 'k'
    elseif most > 0 and get(o, 'c') >= most then
      fate = 'o'
    else
      see(o, print)
    end
  end
  if fate == 'a' then
    put(o, tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 5])
    touch(o)
  end
  fates[#fates + 1] = fate
end
return {finish(), table.concat(fates)}
