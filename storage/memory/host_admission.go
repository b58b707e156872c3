package memory

import (
	"context"
	"github.com/decorum-crawler/decorum/storage"
)

// countedHosts is what a Store knows of AdmitHosts.
type countedHosts struct {
	hosts             map[string]struct{}
	hostCountByDomain map[string]int
}

func (c *countedHosts) hostCountsFor(h storage.HostToAdmit) storage.AdmittedHostTotals {
	_, counted := c.hosts[h.Host]
	return storage.AdmittedHostTotals{Hosts: len(c.hosts), DomainHosts: c.hostCountByDomain[h.Domain], IncludesHost: counted}
}

// AdmitHosts implements storage.Store.
func (m *Store) AdmitHostsWithinLimits(ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostAdmissionLimits) ([]storage.HostAdmissionResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if m.countedHosts.hosts == nil {
		m.countedHosts = countedHosts{hosts: make(map[string]struct{}), hostCountByDomain: make(map[string]int)}
	}
	results := make([]storage.HostAdmissionResult, len(hosts))
	for i, h := range hosts {
		results[i] = limits.CheckNewHost(m.countedHosts.hostCountsFor(h), h.IgnoreLimits)
		if results[i] == storage.HostAdmitted {
			m.countedHosts.hosts[h.Host] = struct{}{}
			m.countedHosts.hostCountByDomain[h.Domain]++
		}
	}
	return results, nil
}

// AdmittedHostCountsFor implements storage.Store.
func (m *Store) AdmittedHostTotalsFor(ctx context.Context, h storage.HostToAdmit) (storage.AdmittedHostTotals, error) {
	if err := m.lock(ctx); err != nil {
		return storage.AdmittedHostTotals{}, err
	}
	defer m.mu.Unlock()
	return m.countedHosts.hostCountsFor(h), nil
}
