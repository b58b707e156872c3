-- set_shared_value(clock, name, value, old, version) → summary, and 1; or 0 if old is not empty and the
-- current value is another: sets a shared value, or deletes it if value is empty. version becomes the
-- version of the shared values. It is random, because a replica that takes over could count a number
-- again that the master has used for other values.
local key = keyPrefix .. 'b'
if ARGV[4] ~= '' and call('HGET', key, ARGV[2]) ~= ARGV[4] then return {summary(), '0'} end
if ARGV[3] == '' then
  call('HDEL', key, ARGV[2])
else
  call('HSET', key, ARGV[2], ARGV[3])
end
setField(meta, 'board', ARGV[5])
return {saveChanges(), '1'}
