-- return_leases(clock, defaultDelay, token…) → summary: ends the leases of a process that stops. Each
-- record goes back to its place. Tokens must be in the reverse order of the leases. The hosts rest for
-- gap, and for at least defaultDelay, because a visit may have been under way.
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
