-- hold(clock, origin, host, until, suspended) → summary: holds an origin until a time; an empty time
-- ends the hold.
local o = findOrAddOrigin(ARGV[2], ARGV[3])
setField(o, 'e', parseTime(ARGV[4]))
setField(o, 'D', tonumber(ARGV[5]))
markChanged(o)
return {saveChanges(), ''}
