-- recall(clock, at, {origin, print, old record, new record}…) → sum, one character
-- each: 1 if the page rested with the old record, and now rests with the new one
-- and not beyond at.
local done = {}
for i = 3, #ARGV, 4 do
  local o, print = origin(ARGV[i]), ARGV[i + 1]
  if o and call('HGET', base .. 'x:' .. o.name, print) == ARGV[i + 2] then
    local at = tonumber(call('ZSCORE', laneKey(o, resting), print))
    rest(o, print, math.min(at, moment(ARGV[2])), ARGV[i + 3])
    touch(o)
    done[#done + 1] = '1'
  else
    done[#done + 1] = '0'
  end
end
return {finish(), table.concat(done)}
