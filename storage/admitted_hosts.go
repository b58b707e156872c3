package storage

import (
	"context"
	"errors"
	"strings"
)

// A HostAdmitter counts the hosts of a crawl and of each domain. It never forgets a counted host,
// so that a restarted crawl admits no more hosts than an uninterrupted one.
type HostAdmitter interface {
	// AdmitHostsWithinLimits counts the hosts that were not counted before, in their order, as far
	// as limits allow, and returns the result of each. A host that was counted before is
	// HostAlreadyCounted whatever the limits are, so that a repeated call counts no host twice. The
	// call becomes durable in order with the other calls of the Store.
	AdmitHostsWithinLimits(ctx context.Context, hosts []HostToAdmit, limits HostCountLimits) ([]HostLimitResult, error)
	// AdmittedHostTotalsFor returns how many hosts were counted, of the crawl and of h.Domain, and
	// whether h is one of them.
	AdmittedHostTotalsFor(ctx context.Context, h HostToAdmit) (AdmittedHostTotals, error)
}

// A HostToAdmit is a host that AdmitHostsWithinLimits may count.
type HostToAdmit struct {
	Host         string // in the form of Origin.Host
	Domain       string // the domain whose limit applies to the host
	IgnoreLimits bool   // admit it whatever the limits are
}

// HostCountLimits limit how many hosts AdmitHostsWithinLimits counts.
type HostCountLimits struct {
	MaxHosts          int  // in the whole crawl; 0: no limit
	MaxHostsPerDomain int  // in one domain; 0: no limit
	RefuseNewHosts    bool // count no new host for now
}

// A HostLimitResult is what AdmitHostsWithinLimits did with a host.
type HostLimitResult uint8

// Results for hosts.
const (
	HostAdmitted       HostLimitResult = iota // new: it is counted
	HostAlreadyCounted                        // counted before
	NewHostsRefused                           // new, and HostCountLimits.RefuseNewHosts
	DomainLimitReached                        // new, and its domain has HostCountLimits.MaxHostsPerDomain hosts
	HostLimitReached                          // new, and the crawl has HostCountLimits.MaxHosts hosts
)

// AdmittedHostTotals are the numbers of hosts that a HostAdmitter has counted.
type AdmittedHostTotals struct {
	Hosts        int  // in the whole crawl
	DomainHosts  int  // in the host's domain
	IncludesHost bool // the host is counted
}

// CheckNewHost returns the result of AdmitHostsWithinLimits for a host whose totals are c. Engines
// call it for each host; ignoreLimits is HostToAdmit.IgnoreLimits.
func (l HostCountLimits) CheckNewHost(c AdmittedHostTotals, ignoreLimits bool) HostLimitResult {
	switch {
	case c.IncludesHost:
		return HostAlreadyCounted
	case ignoreLimits:
		return HostAdmitted
	case l.RefuseNewHosts:
		return NewHostsRefused
	case l.MaxHostsPerDomain > 0 && c.DomainHosts >= l.MaxHostsPerDomain:
		return DomainLimitReached
	case l.MaxHosts > 0 && c.Hosts >= l.MaxHosts:
		return HostLimitReached
	}
	return HostAdmitted
}

// ValidateHostsToAdmit returns an error if a Host or a Domain is empty or contains a zero byte,
// which engines use as a separator in keys.
func ValidateHostsToAdmit(hosts []HostToAdmit) error {
	for _, h := range hosts {
		if h.Host == "" || h.Domain == "" || strings.ContainsRune(h.Host+h.Domain, 0) {
			return errors.New("admit hosts: a host without a name or domain")
		}
	}
	return nil
}
