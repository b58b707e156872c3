-- record_lease_ttl(clock, longest) → sum: from now on leases may be given that run so long. Who
-- gives one has had a replica confirm it, so that a server that takes over knows it.
setField(meta, 'longest', math.max(getNumber(meta, 'longest'), tonumber(ARGV[2])))
return {saveChanges(), ''}
