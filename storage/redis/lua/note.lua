-- note(clock, origin, host, key, value?) → sum: keeps a note, or deletes it.
meet(ARGV[2], ARGV[3])
if ARGV[5] then
  call('HSET', base .. 'n:' .. ARGV[2], ARGV[4], ARGV[5])
else
  call('HDEL', base .. 'n:' .. ARGV[2], ARGV[4])
end
return {finish(), ''}
