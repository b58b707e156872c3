-- confirm_due(clock, {host, due, gap}…) → summary, 1 for each: sets due and gap of hosts, unless they
-- are later or longer already. It repeats what an ack has set, so that a replica confirms it.
local done = {}
for i = 2, #ARGV, 3 do
  local h = loadHost(ARGV[i])
  delayHost(h, parseTime(ARGV[i + 1]))
  setField(h, 'gap', math.max(getNumber(h, 'gap'), tonumber(ARGV[i + 2])))
  requeueHost(h)
  done[#done + 1] = '1'
end
return {saveChanges(), table.concat(done)}
