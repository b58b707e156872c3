-- announce(clock, longest) → sum: from now on leases may be given that run so long. Who
-- gives one has had a replica confirm it, so that a server that takes over knows it.
set(meta, 'longest', math.max(get(meta, 'longest'), tonumber(ARGV[2])))
return {finish(), ''}
