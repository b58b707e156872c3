package politeness

// HostCount returns how many hosts are in memory.
func (l *Limiter) HostCount() int {
	l.lock()
	defer l.unlockAndWake()
	return len(l.sharedHosts.byHost)
}

// AddrCounts returns how many addresses, and homes of hosts, are in memory.
func (l *Limiter) AddrCounts() (addresses, hosts int) {
	l.lock()
	defer l.unlockAndWake()
	return len(l.sharedHosts.byAddr), len(l.sharedHosts.addrOf)
}
