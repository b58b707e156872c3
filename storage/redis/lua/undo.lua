-- undo(clock, default rest, token…) → sum: leases whose holder stops. Their records
-- go back to where they were, the latest first, and their hosts rest: a visit may
-- have been under way.
for i = 3, #ARGV do
  local l = findLease(ARGV[i])
  if l then
    local o = endLease(ARGV[i], l)
    local h = host(o.is.H)
    local gap = math.max(get(h, 'gap'), tonumber(ARGV[2]))
    if gap > 0 then lengthen(h, now + gap) end
    undo(o, l)
  end
end
return {finish(), ''}
