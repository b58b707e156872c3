-- has_seen(clock, origin, print) → 1 if the seen set of the origin holds the fingerprint.
local o = findOrigin(ARGV[2])
return o and isSeen(o, ARGV[3]) and 1 or 0
