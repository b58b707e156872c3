-- set_note(clock, origin, host, key, value?) → summary: sets a note, or deletes it if there is no value.
findOrAddOrigin(ARGV[2], ARGV[3])
if ARGV[5] then
  call('HSET', keyPrefix .. 'n:' .. ARGV[2], ARGV[4], ARGV[5])
else
  call('HDEL', keyPrefix .. 'n:' .. ARGV[2], ARGV[4])
end
return {saveChanges(), ''}
