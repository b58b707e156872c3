-- awaiting_revisit(clock, {origin, print}…) → the records of pages that rest, false for others.
local records = {}
for i = 2, #ARGV, 2 do
  records[#records + 1] = call('HGET', keyPrefix .. 'x:' .. ARGV[i], ARGV[i + 1])
end
return records
