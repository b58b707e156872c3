-- confirm_due(clock, {host, due, gap}…) → sum, 1 for each: a host is due no earlier, and rests no
-- less after a visit whose end is not recorded. It is what an ack has said before.
local done = {}
for i = 2, #ARGV, 3 do
  local h = loadHost(ARGV[i])
  delayHost(h, parseTime(ARGV[i + 1]))
  setField(h, 'gap', math.max(getNumber(h, 'gap'), tonumber(ARGV[i + 2])))
  requeueHost(h)
  done[#done + 1] = '1'
end
return {saveChanges(), table.concat(done)}
