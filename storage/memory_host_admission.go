package storage

import "context"

// countedHosts is what a Memory knows of AdmitHosts.
type countedHosts struct {
	hosts   map[string]struct{}
	domains map[string]int
}

func (c *countedHosts) count(h HostAdmission) HostCount {
	_, counted := c.hosts[h.Host]
	return HostCount{Hosts: len(c.hosts), OfDomain: c.domains[h.Domain], Counted: counted}
}

// AdmitHosts implements Store.
func (m *Memory) AdmitHosts(ctx context.Context, hosts []HostAdmission, limits HostLimits) ([]HostFate, error) {
	if err := CheckAdmissions(hosts); err != nil {
		return nil, err
	}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if m.counted.hosts == nil {
		m.counted = countedHosts{hosts: make(map[string]struct{}), domains: make(map[string]int)}
	}
	fates := make([]HostFate, len(hosts))
	for i, h := range hosts {
		fates[i] = limits.Fate(m.counted.count(h), h.Always)
		if fates[i] == HostAdmitted {
			m.counted.hosts[h.Host] = struct{}{}
			m.counted.domains[h.Domain]++
		}
	}
	return fates, nil
}

// HostCount implements Store.
func (m *Memory) HostCount(ctx context.Context, h HostAdmission) (HostCount, error) {
	if err := m.lock(ctx); err != nil {
		return HostCount{}, err
	}
	defer m.mu.Unlock()
	return m.counted.count(h), nil
}
