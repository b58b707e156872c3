package politeness

// HostCount returns how many hosts are in memory.
func (l *Limiter) HostCount() int {
	l.lock()
	defer l.unlockAndWake()
	return len(l.sharedHosts.semaphoresByHost)
}

// AddrCounts returns how many addresses, and homes of hosts, are in memory.
func (l *Limiter) AddrCounts() (addresses, hosts int) {
	l.lock()
	defer l.unlockAndWake()
	return len(l.sharedHosts.semaphoresByAddr), len(l.sharedHosts.addrOf)
}
