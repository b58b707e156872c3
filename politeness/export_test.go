package politeness

// HostCount returns how many hosts are in memory.
func (l *Limiter) HostCount() int {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return len(l.sharedHosts.throttlesByHost)
}

// AddrCounts returns how many addresses, and how many last addresses of hosts, are in memory.
func (l *Limiter) AddrCounts() (addresses, hosts int) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return len(l.sharedHosts.throttlesByAddr), len(l.sharedHosts.lastAddrByHost)
}
