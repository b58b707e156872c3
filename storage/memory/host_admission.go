package memory

import (
	"context"
	"github.com/decorum-crawler/decorum/storage"
)

// countedHosts is what a Store knows of AdmitHosts.
type countedHosts struct {
	hosts   map[string]struct{}
	domains map[string]int
}

func (c *countedHosts) countsFor(h storage.HostCandidate) storage.HostCounts {
	_, counted := c.hosts[h.Host]
	return storage.HostCounts{Hosts: len(c.hosts), DomainHosts: c.domains[h.Domain], Counted: counted}
}

// AdmitHosts implements storage.Store.
func (m *Store) AdmitHosts(ctx context.Context, hosts []storage.HostCandidate, limits storage.HostLimits) ([]storage.NewHostResult, error) {
	if err := storage.CheckHostCandidates(hosts); err != nil {
		return nil, err
	}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if m.countedHosts.hosts == nil {
		m.countedHosts = countedHosts{hosts: make(map[string]struct{}), domains: make(map[string]int)}
	}
	results := make([]storage.NewHostResult, len(hosts))
	for i, h := range hosts {
		results[i] = limits.AdmitResult(m.countedHosts.countsFor(h), h.IgnoreLimits)
		if results[i] == storage.HostAdmitted {
			m.countedHosts.hosts[h.Host] = struct{}{}
			m.countedHosts.domains[h.Domain]++
		}
	}
	return results, nil
}

// HostCountsFor implements storage.Store.
func (m *Store) HostCountsFor(ctx context.Context, h storage.HostCandidate) (storage.HostCounts, error) {
	if err := m.lock(ctx); err != nil {
		return storage.HostCounts{}, err
	}
	defer m.mu.Unlock()
	return m.countedHosts.countsFor(h), nil
}
