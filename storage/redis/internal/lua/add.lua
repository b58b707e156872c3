-- add(clock, maxPerOrigin, {origin, host, lane, rank, fingerprint, record}…) → summary, one character
-- each: a added, k known to the seen set, o over maxPerOrigin (0: no limit). An entry with an empty
-- fingerprint bypasses the seen set and the limit.
local maxPerOrigin, results = tonumber(ARGV[2]), {}
for i = 3, #ARGV, 6 do
  local o, fingerprint = findOrAddOrigin(ARGV[i], ARGV[i + 1]), ARGV[i + 4]
  local result = 'a'
  if fingerprint ~= '' then
    if isSeen(o, fingerprint) then
      result = 'k'
    elseif maxPerOrigin > 0 and getNumber(o, 'c') >= maxPerOrigin then
      result = 'o'
    else
      addSeen(o, fingerprint)
    end
  end
  if result == 'a' then
    queueRecord(o, tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 5])
    markChanged(o)
  end
  results[#results + 1] = result
end
return {saveChanges(), table.concat(results)}
