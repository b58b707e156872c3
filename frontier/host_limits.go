package frontier

import (
	"context"
	"slices"

	"golang.org/x/net/publicsuffix"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A name in DNS costs nothing: with a wildcard record a domain has as many hosts
// as its pages link to, and each takes memory, a robots.txt and a place in the
// schedule. So new hosts are limited, for each registrable domain and for the
// crawl. The store counts them, and never forgets one.

// RegistrableDomain returns the registered domain of a host by the public suffix list:
// example.co.uk for www.example.co.uk. Private suffixes count, as for Domain: each user
// of github.io is a separate domain, since each has a site. The domain of an IP
// address, or of a public suffix, is itself.
func RegistrableDomain(host string) string {
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// maxRecentHosts is how many recently admitted hosts are remembered. For another host the
// store is asked.
const maxRecentHosts = 1 << 15

// admission returns a host and its domain, as the store counts them.
func admission(host string) storage.HostAdmission {
	return storage.HostAdmission{Host: host, Domain: RegistrableDomain(host)}
}

// hostLimits returns the present limits of hosts.
func (f *Frontier) hostLimits() storage.HostLimits {
	cfg := &f.cfg.Scope.cfg
	return storage.HostLimits{
		Hosts: cfg.MaxHosts, PerDomain: cfg.MaxHostsPerDomain,
		RefuseNewHosts: f.cfg.LowMemory != nil && f.cfg.LowMemory(),
	}
}

// isHostExempt reports whether the host of e is counted but never refused, because a
// person named it, or because a robots.txt redirects there, which it may do only a few
// times.
func isHostExempt(e *storage.Entry) bool {
	return e.Source == storage.Seed || e.Source == storage.Robots && !e.For.IsZero()
}

// admitHosts refuses the entries whose hosts are new and exceed a limit, and returns
// the others in the same slice.
func (f *Frontier) admitHosts(
	ctx context.Context, refused func(storage.Entry, error), entries []storage.Entry,
) ([]storage.Entry, error) {
	if f.cfg.Scope == nil {
		return entries, nil
	}
	// Usually all hosts were admitted a moment ago; then the store is not needed.
	offered, at := f.unadmitted(entries)
	if len(offered) == 0 {
		return entries, nil
	}
	limits := f.hostLimits()
	fates, err := f.store.AdmitHosts(ctx, offered, limits)
	if err != nil {
		return nil, err
	}
	for i, fate := range fates {
		if fate == storage.HostAdmitted || fate == storage.HostKnown {
			f.admitted.remember(offered[i].Host)
		}
	}
	in := entries[:0]
	for i := range entries {
		e := entries[i]
		if why := f.hostRefusal(e.URL, fates, at[i]); why != nil {
			f.refuse(e, why)
			if refused != nil {
				refused(e, why)
			}
			continue
		}
		in = append(in, e)
	}
	return in, nil
}

// unadmitted returns the hosts of the entries that the cache of admitted hosts lacks,
// and the index of each entry's host among them; -1: the host was admitted before. Both
// are nil if all were admitted before.
func (f *Frontier) unadmitted(entries []storage.Entry) (offered []storage.HostAdmission, at []int) {
	var index map[string]int
	for i := range entries {
		e := &entries[i]
		host := e.URL.Origin().Host()
		if f.admitted.holds(host) {
			continue
		}
		if at == nil {
			at, index = slices.Repeat([]int{-1}, len(entries)), map[string]int{}
		}
		k, there := index[host]
		if !there {
			k = len(offered)
			index[host] = k
			offered = append(offered, admission(host))
		}
		// One entry that is exempt admits the host for all of them.
		offered[k].Always = offered[k].Always || isHostExempt(e)
		at[i] = k
	}
	return offered, at
}

// hostRefusal returns why u is refused for the fate of its host, nil if it is not.
func (f *Frontier) hostRefusal(u decorum.URL, fates []storage.HostFate, at int) error {
	if at < 0 {
		return nil
	}
	return f.cfg.Scope.hostRefusal(u, fates[at])
}

// hostRefusal returns the error that refuses u for the fate of its host, nil if
// the host was admitted.
func (s *Scope) hostRefusal(u decorum.URL, fate storage.HostFate) error {
	switch fate {
	case storage.DomainFull:
		domain := RegistrableDomain(u.Origin().Host())
		return outOfScope(u, refusalOf(ManyHostsOfDomain, "more than %d hosts of %s", s.cfg.MaxHostsPerDomain, domain))
	case storage.HostsFull:
		return outOfScope(u, refusalOf(ManyHosts, "more than %d hosts", s.cfg.MaxHosts))
	case storage.NewHostsRefused:
		return outOfScope(u, refusalOf(LowMemory, "a new host, while memory is nearly used up"))
	}
	return nil
}

// checkHostLimits returns why the crawl would refuse a link to u for its host; nil if it would
// not. It counts nothing.
func (f *Frontier) checkHostLimits(ctx context.Context, u decorum.URL) (refusal, err error) {
	count, err := f.store.HostCount(ctx, admission(u.Origin().Host()))
	if err != nil {
		return nil, err
	}
	return f.cfg.Scope.hostRefusal(u, f.hostLimits().Fate(count, false)), nil
}

// countedNote records that all hosts of the store are counted.
const countedNote = "hosts_counted"

// IsOwnNote reports whether a note of the zero Origin describes its own store, so that
// an import must not copy it.
func IsOwnNote(key string) bool { return key == countedNote }

// CountHosts counts the hosts of a store that did not count hosts before: of an earlier
// version, or filled by an import. It does so once for a store, and holds the names of
// all hosts in memory while it counts.
func (f *Frontier) CountHosts(ctx context.Context) error {
	store, ok := f.store.(storage.Inspector)
	if !ok || f.cfg.Scope == nil {
		return nil
	}
	if done, err := f.store.ReadNote(ctx, decorum.Origin{}, countedNote); err != nil || len(done) > 0 {
		return err
	}
	// The store must not be called while it is inspected.
	var names []string
	err := store.Origins(ctx, func(o storage.OriginInfo) bool {
		if o.Seen+o.Queued > 0 { // else no URL of it was ever queued
			names = append(names, o.Origin.Host())
		}
		return true
	})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(names, 1000) {
		hosts := make([]storage.HostAdmission, len(batch))
		for i, host := range batch {
			hosts[i] = admission(host)
		}
		if _, err := f.store.AdmitHosts(ctx, hosts, storage.HostLimits{}); err != nil {
			return err
		}
	}
	return f.store.SetNote(ctx, decorum.Origin{}, countedNote, []byte("1"))
}
