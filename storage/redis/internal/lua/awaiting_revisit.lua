-- awaiting_revisit(clock, {origin, fingerprint}…) → for each page its record if it awaits its revisit,
-- false otherwise.
local records = {}
for i = 2, #ARGV, 2 do
  records[#records + 1] = call('HGET', keyPrefix .. 'x:' .. ARGV[i], ARGV[i + 1])
end
return records
