-- reschedule(clock, at, {origin, fingerprint, old record, new record}…) → summary, one character each:
-- 1 if the page awaits its revisit with the old record; it then has the new record, and is due at at,
-- or earlier if it was. 0 otherwise.
local done = {}
for i = 3, #ARGV, 4 do
  local o, fingerprint = findOrigin(ARGV[i]), ARGV[i + 1]
  if o and call('HGET', keyPrefix .. 'x:' .. o.name, fingerprint) == ARGV[i + 2] then
    local at = tonumber(call('ZSCORE', laneKey(o, revisitLane), fingerprint))
    queueRevisit(o, fingerprint, math.min(at, parseTime(ARGV[2])), ARGV[i + 3])
    markChanged(o)
    done[#done + 1] = '1'
  else
    done[#done + 1] = '0'
  end
end
return {saveChanges(), table.concat(done)}
