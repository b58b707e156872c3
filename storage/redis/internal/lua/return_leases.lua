-- return_leases(clock, default rest, token…) → sum: leases whose holder stops. Their records
-- go back to where they were, the latest first, and their hosts rest: a visit may
-- have been under way.
for i = 3, #ARGV do
  local l = findLease(ARGV[i])
  if l then
    local o = endLease(ARGV[i], l)
    local h = loadHost(o.fields.H)
    local delay = math.max(getNumber(h, 'gap'), tonumber(ARGV[2]))
    if delay > 0 then delayHost(h, now + delay) end
    putBack(o, l)
  end
end
return {saveChanges(), ''}
