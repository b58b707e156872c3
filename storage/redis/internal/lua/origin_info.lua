-- origin_info(clock, origin…) → the server's time, and for each origin that was added: name, end of the
-- hold, suspended (1 or 0), URLs queued, leased, awaiting their revisit, parked and seen, when its next
-- URL is due (-1: it has none), and due, gap, slots, strikes and memo of its host.
local infos = {}
for i = 2, #ARGV do
  local o = findOrigin(ARGV[i])
  if o then
    local h = loadHost(o.fields.H)
    local at = tonumber(call('ZSCORE', keyPrefix .. 'p:' .. h.name, o.name))
    infos[#infos + 1] = {o.name, getNumber(o, 'e'), getNumber(o, 'D'), getNumber(o, 'n'), getNumber(o, 'out'), getNumber(o, 'L' .. revisitLane), getNumber(o, 'g'),
      getNumber(o, 'c'), at and math.max(at, getNumber(h, 'due')) or -1,
      getNumber(h, 'due'), getNumber(h, 'gap'), getNumber(h, 'slots'), getNumber(h, 'strikes'), h.fields.memo or ''}
  end
end
return {now, infos}
