package storage

import "context"

// countedHosts is what a Memory knows of AdmitHosts.
type countedHosts struct {
	hosts   map[string]struct{}
	domains map[string]int
}

func (c *countedHosts) countsFor(h HostCandidate) HostCounts {
	_, counted := c.hosts[h.Host]
	return HostCounts{Hosts: len(c.hosts), DomainHosts: c.domains[h.Domain], Counted: counted}
}

// AdmitHosts implements Store.
func (m *Memory) AdmitHosts(ctx context.Context, hosts []HostCandidate, limits HostLimits) ([]NewHostResult, error) {
	if err := CheckHostCandidates(hosts); err != nil {
		return nil, err
	}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if m.countedHosts.hosts == nil {
		m.countedHosts = countedHosts{hosts: make(map[string]struct{}), domains: make(map[string]int)}
	}
	results := make([]NewHostResult, len(hosts))
	for i, h := range hosts {
		results[i] = limits.AdmitResult(m.countedHosts.countsFor(h), h.IgnoreLimits)
		if results[i] == HostAdmitted {
			m.countedHosts.hosts[h.Host] = struct{}{}
			m.countedHosts.domains[h.Domain]++
		}
	}
	return results, nil
}

// HostCountsFor implements Store.
func (m *Memory) HostCountsFor(ctx context.Context, h HostCandidate) (HostCounts, error) {
	if err := m.lock(ctx); err != nil {
		return HostCounts{}, err
	}
	defer m.mu.Unlock()
	return m.countedHosts.countsFor(h), nil
}
