package frontier

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

// A name in DNS costs nothing: with a wildcard record a domain has as many hosts
// as its pages link to, and each takes memory, a robots.txt and a place in the
// schedule. So new hosts are limited, for each registrable domain and for the
// crawl. The store counts them, and never forgets one.

// maxRecentHosts is how many recently admitted hosts are remembered. For another host the
// store is asked.
const maxRecentHosts = 1 << 15

// newHostToAdmit returns a host and its domain, as the store counts them.
func newHostToAdmit(host string) storage.HostToAdmit {
	return storage.HostToAdmit{Host: host, Domain: registrable.Domain(host)}
}

// A hostCountLimiter refuses the URLs of new hosts when the crawl, or their domain, has all the
// hosts that it may have. The store counts the hosts.
type hostCountLimiter struct {
	store            storage.Store
	scope            *Scope          // has the limits; nil: there are none
	isMemoryLow      func() bool     // new hosts are refused while it returns true; nil: never
	refusals         *refusalCounter // counts what filter refuses
	recentlyAdmitted boundedTextSet  // hosts that the store has lately admitted
}

// admissionLimits returns the present limits of hosts.
func (h *hostCountLimiter) admissionLimits() storage.HostCountLimits {
	cfg := &h.scope.cfg
	return storage.HostCountLimits{
		MaxHosts: cfg.MaxHosts, MaxHostsPerDomain: cfg.MaxHostsPerDomain,
		RefuseNewHosts: h.isMemoryLow != nil && h.isMemoryLow(),
	}
}

// isExemptFromHostLimits reports whether the host of e is counted but never refused, because a
// person named it, or because a robots.txt redirects there, which it may do only a few
// times.
func isExemptFromHostLimits(e *storage.Entry) bool {
	return e.Source == storage.SourceSeed || e.Source == storage.SourcePrerequisite && !e.RobotsFor.IsZero()
}

// filter refuses the entries whose hosts are new and exceed a limit, and returns
// the others in the same slice. It calls refused, if that is not nil, with each that it refuses.
func (h *hostCountLimiter) filter(
	ctx context.Context, refused func(storage.Entry, error), entries []storage.Entry,
) ([]storage.Entry, error) {
	if h.scope == nil {
		return entries, nil
	}
	// Usually all hosts were admitted a moment ago; then the store is not needed.
	candidates, at := h.hostsNotRecentlyAdmitted(entries)
	if len(candidates) == 0 {
		return entries, nil
	}
	limits := h.admissionLimits()
	results, err := h.store.AdmitHostsWithinLimits(ctx, candidates, limits)
	if err != nil {
		return nil, err
	}
	for i, result := range results {
		if result == storage.HostAdmitted || result == storage.HostAlreadyCounted {
			h.recentlyAdmitted.add(candidates[i].Host)
		}
	}
	in := entries[:0]
	for i := range entries {
		e := entries[i]
		if why := h.admissionError(e.URL, results, at[i]); why != nil {
			h.refusals.countAndReport(e, why)
			if refused != nil {
				refused(e, why)
			}
			continue
		}
		in = append(in, e)
	}
	return in, nil
}

// hostsNotRecentlyAdmitted returns the hosts of the entries that the cache of admitted hosts lacks,
// and the index of each entry's host among them; -1: the host was admitted before. Both
// are nil if all were admitted before.
func (h *hostCountLimiter) hostsNotRecentlyAdmitted(entries []storage.Entry) (candidates []storage.HostToAdmit, at []int) {
	var index map[string]int
	for i := range entries {
		e := &entries[i]
		host := e.URL.Origin().Host()
		if h.recentlyAdmitted.contains(host) {
			continue
		}
		if at == nil {
			at, index = slices.Repeat([]int{-1}, len(entries)), map[string]int{}
		}
		k, ok := index[host]
		if !ok {
			k = len(candidates)
			index[host] = k
			candidates = append(candidates, newHostToAdmit(host))
		}
		// One entry that is exempt admits the host for all of them.
		candidates[k].IgnoreLimits = candidates[k].IgnoreLimits || isExemptFromHostLimits(e)
		at[i] = k
	}
	return candidates, at
}

// admissionError returns why u is refused for the fate of its host, nil if it is not.
func (h *hostCountLimiter) admissionError(u decorum.URL, results []storage.HostLimitResult, at int) error {
	if at < 0 {
		return nil
	}
	return h.scope.hostAdmissionError(u, results[at])
}

// hostAdmissionError returns the error that refuses u for the fate of its host, nil if
// the host was admitted.
func (s *Scope) hostAdmissionError(u decorum.URL, result storage.HostLimitResult) error {
	switch result {
	case storage.DomainLimitReached:
		domain := registrable.Domain(u.Origin().Host())
		return outOfScopeError(u, newRefusal(TooManyDomainHosts, "more than %d hosts of %s", s.cfg.MaxHostsPerDomain, domain))
	case storage.HostLimitReached:
		return outOfScopeError(u, newRefusal(TooManyHosts, "more than %d hosts", s.cfg.MaxHosts))
	case storage.NewHostsRefused:
		return outOfScopeError(u, newRefusal(LowMemory, "a new host, while memory is nearly used up"))
	}
	return nil
}

// refusalOf returns why the crawl would refuse a link to u for its host; nil if it would
// not. It counts nothing. The crawl has a scope.
func (h *hostCountLimiter) refusalOf(ctx context.Context, u decorum.URL) (refusal, err error) {
	count, err := h.store.AdmittedHostTotalsFor(ctx, newHostToAdmit(u.Origin().Host()))
	if err != nil {
		return nil, err
	}
	return h.scope.hostAdmissionError(u, h.admissionLimits().CheckNewHost(count, false)), nil
}

// hostsCountedNoteKey records that all hosts of the store are counted.
const hostsCountedNoteKey = "hosts_counted"

// IsStoreSpecificNote reports whether a note of the zero Origin describes its own store, so that
// an import must not copy it.
func IsStoreSpecificNote(key string) bool { return key == hostsCountedNoteKey }

// ensureHostsCounted counts the hosts of a store that did not count hosts before: of an earlier
// version, or filled by an import. It does so once for a store, and holds the names of
// all hosts in memory while it counts.
func (h *hostCountLimiter) ensureHostsCounted(ctx context.Context) error {
	store, ok := h.store.(storage.Inspector)
	if !ok || h.scope == nil {
		return nil
	}
	if done, err := h.store.ReadNote(ctx, decorum.Origin{}, hostsCountedNoteKey); err != nil || len(done) > 0 {
		return err
	}
	// The store must not be called while it is inspected.
	var names []string
	err := store.Origins(ctx, func(o storage.OriginInfo) bool {
		if o.SeenURLs+o.QueuedURLs > 0 { // else no URL of it was ever queued
			names = append(names, o.Origin.Host())
		}
		return true
	})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(names, 1000) {
		hosts := make([]storage.HostToAdmit, len(batch))
		for i, host := range batch {
			hosts[i] = newHostToAdmit(host)
		}
		if _, err := h.store.AdmitHostsWithinLimits(ctx, hosts, storage.HostCountLimits{}); err != nil {
			return err
		}
	}
	return h.store.SetNote(ctx, decorum.Origin{}, hostsCountedNoteKey, []byte("1"))
}
