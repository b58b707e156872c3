-- owe(clock, {host, due, gap}…) → sum, 1 for each: a host is due no earlier, and rests no
-- less after a visit whose end is not recorded. It is what an ack has said before.
local done = {}
for i = 2, #ARGV, 3 do
  local h = host(ARGV[i])
  lengthen(h, moment(ARGV[i + 1]))
  set(h, 'gap', math.max(get(h, 'gap'), tonumber(ARGV[i + 2])))
  seat(h)
  done[#done + 1] = '1'
end
return {finish(), table.concat(done)}
