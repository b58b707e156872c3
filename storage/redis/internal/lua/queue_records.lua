-- queue_records(clock, origin, lane, rank, from, to) → the records of a queue from position from to
-- position to, inclusive. In a timed lane each record follows its time.
local o, lane = findOrigin(ARGV[2]), tonumber(ARGV[3])
if not o then return {} end
local key = laneKey(o, lane, ARGV[4])
if not isTimed(lane) then return call('LRANGE', key, ARGV[5], ARGV[6]) end
local records = {}
local flat = call('ZRANGE', key, ARGV[5], ARGV[6], 'WITHSCORES')
for i = 1, #flat, 2 do
  local record = string.sub(flat[i], 13)
  if lane == revisitLane then record = call('HGET', keyPrefix .. 'x:' .. o.name, flat[i]) end
  records[#records + 1], records[#records + 2] = flat[i + 1], record
end
return records
