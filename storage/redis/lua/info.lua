-- info(clock, origin…) → of each that was met: its name, hold, whether that is
-- dormant, how many are queued, leased, resting, parked and seen, when its next is
-- ready, and the clock of its host.
local infos = {}
for i = 2, #ARGV do
  local o = origin(ARGV[i])
  if o then
    local h = host(o.is.H)
    local at = tonumber(call('ZSCORE', base .. 'p:' .. h.name, o.name))
    infos[#infos + 1] = {o.name, get(o, 'e'), get(o, 'D'), get(o, 'n'), get(o, 'out'), get(o, 'L' .. resting), get(o, 'g'),
      get(o, 'c'), at and math.max(at, get(h, 'due')) or -1,
      get(h, 'due'), get(h, 'gap'), get(h, 'slots'), get(h, 'strikes'), h.is.memo or ''}
  end
end
return {now, infos}
