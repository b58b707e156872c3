-- origin_info(clock, origin…) → of each that was met: its name, hold, whether that is
-- dormant, how many are queued, leased, resting, parked and seen, when its next is
-- ready, and the clock of its host.
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
