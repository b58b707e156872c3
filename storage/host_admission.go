package storage

import (
	"context"
	"errors"
	"strings"
)

// A HostCounter counts the hosts of a crawl, and of each domain. It never forgets a
// counted host, so that a restarted crawl admits no more hosts than an uninterrupted
// one.
type HostCounter interface {
	// AdmitHosts counts the hosts that were not counted before, in their order, as
	// far as limits allow it, and returns what became of each. A host that was
	// counted is known whatever the limits are. To repeat a call changes nothing.
	// It becomes durable in order with the other calls of the Store.
	AdmitHosts(ctx context.Context, hosts []HostAdmission, limits HostLimits) ([]HostFate, error)
	// HostCount returns how many hosts were counted, and whether h is one of them.
	HostCount(ctx context.Context, h HostAdmission) (HostCount, error)
}

// A HostAdmission is a host that is offered to AdmitHosts.
type HostAdmission struct {
	Host   string // as Origin.Host returns it
	Domain string // the domain that the host counts for
	Always bool   // admit it whatever the limits are
}

// HostLimits say how many hosts AdmitHosts may count.
type HostLimits struct {
	Hosts          int  // of the whole crawl; 0: no limit
	PerDomain      int  // of one domain; 0: no limit
	RefuseNewHosts bool // admit no new host for now
}

// A HostFate is what became of a host that was offered to AdmitHosts.
type HostFate uint8

// Fates of hosts.
const (
	HostAdmitted    HostFate = iota // new: it is counted
	HostKnown                       // counted before
	NewHostsRefused                 // new, and HostLimits.RefuseNewHosts
	DomainFull                      // new, and its domain has HostLimits.PerDomain hosts
	HostsFull                       // new, and the crawl has HostLimits.Hosts hosts
)

// A HostCount is how many hosts were counted.
type HostCount struct {
	Hosts    int  // of the whole crawl
	OfDomain int  // of the domain
	Counted  bool // the host is one of them
}

// Fate returns the result of AdmitHosts for a host in the state c.
func (l HostLimits) Fate(c HostCount, always bool) HostFate {
	switch {
	case c.Counted:
		return HostKnown
	case always:
		return HostAdmitted
	case l.RefuseNewHosts:
		return NewHostsRefused
	case l.PerDomain > 0 && c.OfDomain >= l.PerDomain:
		return DomainFull
	case l.Hosts > 0 && c.Hosts >= l.Hosts:
		return HostsFull
	}
	return HostAdmitted
}

// CheckAdmissions returns an error if no Store may count one of the hosts.
func CheckAdmissions(hosts []HostAdmission) error {
	for _, h := range hosts {
		if h.Host == "" || h.Domain == "" || strings.ContainsRune(h.Host+h.Domain, 0) {
			return errors.New("admit hosts: a host without a name or domain")
		}
	}
	return nil
}
