-- list_queues(clock, origin) → the server's time; lane and rank of each queue of the origin that holds
-- records, in the order in which they are leased; the records that are leased.
local o, queues, leased = findOrigin(ARGV[2]), {}, {}
if not o then return {now, queues, leased} end
for lane = 0, revisitLane do
  if getNumber(o, 'L' .. lane) > 0 then
    queues[#queues + 1] = {lane, 0}
    if not isTimed(lane) then
      for _, rank in ipairs(call('ZRANGE', keyPrefix .. 'r:' .. o.name .. ':' .. lane, 0, -1)) do
        queues[#queues + 1] = {lane, tonumber(rank)}
      end
    end
  end
end
if getNumber(o, 'out') > 0 then
  for _, packed in ipairs(call('HVALS', keyPrefix .. 'l')) do
    local l = cmsgpack.unpack(packed)
    if l.o == o.name then leased[#leased + 1] = l.record end
  end
end
return {now, queues, leased}
