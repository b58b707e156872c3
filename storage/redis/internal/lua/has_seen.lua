-- has_seen(clock, origin, fingerprint) → 1 if the seen set of the origin has the fingerprint, 0 if not.
local o = findOrigin(ARGV[2])
return o and isSeen(o, ARGV[3]) and 1 or 0
