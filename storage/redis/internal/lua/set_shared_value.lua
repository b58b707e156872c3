-- set_shared_value(clock, name, value, was, version) → sum, 1, or 0 if the board does not hold
-- was (empty: whatever it holds): puts a value on the board, or, if it is empty,
-- takes it off. The board has the version from then on: a chance, for a replica that
-- takes over may count again from where the master was before.
local key = keyPrefix .. 'b'
if ARGV[4] ~= '' and call('HGET', key, ARGV[2]) ~= ARGV[4] then return {summary(), '0'} end
if ARGV[3] == '' then
  call('HDEL', key, ARGV[2])
else
  call('HSET', key, ARGV[2], ARGV[3])
end
setField(meta, 'board', ARGV[5])
return {saveChanges(), '1'}
