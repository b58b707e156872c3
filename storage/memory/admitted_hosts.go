package memory

import (
	"context"

	"github.com/decorum-crawler/decorum/storage"
)

// admittedHosts are the hosts that AdmitHostsWithinLimits has counted.
type admittedHosts struct {
	hosts             map[string]struct{}
	hostCountByDomain map[string]int // number of hosts of each domain
}

// hostCountsFor returns the totals of the crawl and of the domain of h, and whether h is counted.
func (c *admittedHosts) hostCountsFor(h storage.HostToAdmit) storage.AdmittedHostTotals {
	_, counted := c.hosts[h.Host]
	return storage.AdmittedHostTotals{Hosts: len(c.hosts),
		DomainHosts: c.hostCountByDomain[h.Domain], IncludesHost: counted}
}

// AdmitHostsWithinLimits implements storage.Store.
func (m *Store) AdmitHostsWithinLimits(ctx context.Context, hosts []storage.HostToAdmit,
	limits storage.HostCountLimits) ([]storage.HostLimitResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	results := make([]storage.HostLimitResult, len(hosts))
	for i, h := range hosts {
		results[i] = limits.CheckNewHost(m.admittedHosts.hostCountsFor(h), h.IgnoreLimits)
		if results[i] == storage.HostAdmitted {
			m.admittedHosts.hosts[h.Host] = struct{}{}
			m.admittedHosts.hostCountByDomain[h.Domain]++
		}
	}
	return results, nil
}

// AdmittedHostTotalsFor implements storage.Store.
func (m *Store) AdmittedHostTotalsFor(ctx context.Context, h storage.HostToAdmit) (storage.AdmittedHostTotals, error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return storage.AdmittedHostTotals{}, err
	}
	defer m.mu.Unlock()
	return m.admittedHosts.hostCountsFor(h), nil
}
