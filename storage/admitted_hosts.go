package storage

import (
	"context"
	"errors"
	"strings"
)

// A HostAdmitter counts the hosts of a crawl, and of each domain. It never forgets a
// counted host, so that a restarted crawl admits no more hosts than an uninterrupted
// one.
type HostAdmitter interface {
	// AdmitHostsWithinLimits counts the hosts that were not counted before, in their order, as
	// far as limits allow it, and returns what became of each. A host that was
	// counted is known whatever the limits are. To repeat a call changes nothing.
	// It becomes durable in order with the other calls of the Store.
	AdmitHostsWithinLimits(ctx context.Context, hosts []HostToAdmit, limits HostCountLimits) ([]HostLimitResult, error)
	// AdmittedHostTotalsFor returns how many hosts were counted, and whether h is one of them.
	AdmittedHostTotalsFor(ctx context.Context, h HostToAdmit) (AdmittedHostTotals, error)
}

// A HostToAdmit is a host that is offered to AdmitHostsWithinLimits.
type HostToAdmit struct {
	Host         string // as Origin.Host returns it
	Domain       string // the domain that the host counts for
	IgnoreLimits bool   // admit it whatever the limits are
}

// HostCountLimits say how many hosts AdmitHostsWithinLimits may count.
type HostCountLimits struct {
	MaxHosts          int  // of the whole crawl; 0: no limit
	MaxHostsPerDomain int  // of one domain; 0: no limit
	RefuseNewHosts    bool // admit no new host for now
}

// A HostLimitResult is what became of a host that was offered to AdmitHostsWithinLimits.
type HostLimitResult uint8

// Results for hosts.
const (
	HostAdmitted       HostLimitResult = iota // new: it is counted
	HostAlreadyCounted                        // counted before
	NewHostsRefused                           // new, and HostCountLimits.RefuseNewHosts
	DomainLimitReached                        // new, and its domain has HostCountLimits.MaxHostsPerDomain hosts
	HostLimitReached                          // new, and the crawl has HostCountLimits.MaxHosts hosts
)

// An AdmittedHostTotals is how many hosts were counted.
type AdmittedHostTotals struct {
	Hosts        int  // of the whole crawl
	DomainHosts  int  // of the domain
	IncludesHost bool // the host is one of them
}

// CheckNewHost returns the result of AdmitHostsWithinLimits for a host in the state c.
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

// ValidateHostsToAdmit returns an error if no Store may count one of the hosts.
func ValidateHostsToAdmit(hosts []HostToAdmit) error {
	for _, h := range hosts {
		if h.Host == "" || h.Domain == "" || strings.ContainsRune(h.Host+h.Domain, 0) {
			return errors.New("admit hosts: a host without a name or domain")
		}
	}
	return nil
}
