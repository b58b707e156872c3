-- lines(clock, origin) → lane and rank of all lines of the origin that hold
-- something, in their order, and the records that are leased.
local o, lines, leased = origin(ARGV[2]), {}, {}
if not o then return {now, lines, leased} end
for lane = 0, resting do
  if get(o, 'L' .. lane) > 0 then
    lines[#lines + 1] = {lane, 0}
    if not isTimed(lane) then
      for _, rank in ipairs(call('ZRANGE', base .. 'r:' .. o.name .. ':' .. lane, 0, -1)) do
        lines[#lines + 1] = {lane, tonumber(rank)}
      end
    end
  end
end
if get(o, 'out') > 0 then
  for _, packed in ipairs(call('HVALS', base .. 'l')) do
    local l = cmsgpack.unpack(packed)
    if l.o == o.name then leased[#leased + 1] = l.record end
  end
end
return {now, lines, leased}
