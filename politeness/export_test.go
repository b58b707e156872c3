package politeness

// Hosts returns how many hosts are in memory.
func (l *Limits) Hosts() int {
	l.lock()
	defer l.unlock()
	return len(l.hosts.hosts)
}

// Addresses returns how many addresses, and homes of hosts, are in memory.
func (l *Limits) Addresses() (addresses, homes int) {
	l.lock()
	defer l.unlock()
	return len(l.hosts.addresses), len(l.hosts.homes)
}
