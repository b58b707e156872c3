-- record_lease_ttl(clock, longest) → summary: records that leases may run for longest. A process calls
-- it, and waits until a replica has confirmed it, before it requests such a lease: a server that takes
-- over then knows how long to wait.
setField(meta, 'longest', math.max(getNumber(meta, 'longest'), tonumber(ARGV[2])))
return {saveChanges(), ''}
