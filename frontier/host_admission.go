package frontier

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/registrable"
	"github.com/decorum-crawler/decorum/storage"
)

// A name in DNS costs nothing: with a wildcard record a domain has as many hosts as its pages link
// to, and each takes memory, a robots.txt visit and a place in the schedule. New hosts are therefore
// limited, for each registrable domain and for the crawl. The store counts them and never drops one.

// maxRecentHosts is how many recently admitted hosts are remembered. For other hosts, filter calls
// the store.
const maxRecentHosts = 1 << 15

// newHostToAdmit returns host and its registrable domain for the store.
func newHostToAdmit(host string) storage.HostToAdmit {
	return storage.HostToAdmit{Host: host, Domain: registrable.Domain(host)}
}

// A hostCountLimiter refuses URLs of new hosts when the crawl or the host's domain has reached its
// limit of hosts. The store counts the hosts.
type hostCountLimiter struct {
	store            storage.Store
	scope            *Scope          // has the limits; nil: no limits
	isMemoryLow      func() bool     // while it returns true, new hosts are refused; nil: never
	refusals         *refusalCounter // counts what filter refuses
	recentlyAdmitted boundedTextSet  // hosts that the store has admitted recently
}

// admissionLimits returns the limits that apply now.
func (h *hostCountLimiter) admissionLimits() storage.HostCountLimits {
	cfg := &h.scope.cfg
	return storage.HostCountLimits{
		MaxHosts: cfg.MaxHosts, MaxHostsPerDomain: cfg.MaxHostsPerDomain,
		RefuseNewHosts: h.isMemoryLow != nil && h.isMemoryLow(),
	}
}

// isExemptFromHostLimits reports whether e's host is counted but never refused: a person named it
// as a seed, or a robots.txt redirects to it, which is possible only a few times.
func isExemptFromHostLimits(e *storage.Entry) bool {
	return e.Source == storage.SourceSeed || e.Source == storage.SourcePrerequisite && !e.RobotsFor.IsZero()
}

// filter returns the entries whose hosts are admitted, in the same slice. It counts each other
// entry as refused, and calls refused with it unless refused is nil.
func (h *hostCountLimiter) filter(
	ctx context.Context, refused func(storage.Entry, error), entries []storage.Entry,
) ([]storage.Entry, error) {
	if h.scope == nil {
		return entries, nil
	}
	// Usually all hosts were admitted recently, and the store is not needed.
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
	// Keep the entries of admitted hosts.
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

// hostsNotRecentlyAdmitted returns the distinct hosts of entries that recentlyAdmitted lacks, and
// for each entry the index of its host among them, or -1 if the host was admitted before. Both are
// nil if all hosts were.
func (h *hostCountLimiter) hostsNotRecentlyAdmitted(
	entries []storage.Entry,
) (candidates []storage.HostToAdmit, at []int) {
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
		// One exempt entry admits the host for all entries.
		candidates[k].IgnoreLimits = candidates[k].IgnoreLimits || isExemptFromHostLimits(e)
		at[i] = k
	}
	return candidates, at
}

// admissionError returns why u is refused because of its host, nil if it is not. at is the index of
// the host's result, or -1 if the host was admitted before.
func (h *hostCountLimiter) admissionError(u decorum.URL, results []storage.HostLimitResult, at int) error {
	if at < 0 {
		return nil
	}
	return h.scope.hostAdmissionError(u, results[at])
}

// hostAdmissionError returns the error that refuses u because of its host's result, nil if the host
// was admitted.
func (s *Scope) hostAdmissionError(u decorum.URL, result storage.HostLimitResult) error {
	switch result {
	case storage.DomainLimitReached:
		domain := registrable.Domain(u.Origin().Host())
		return outOfScopeError(u, newRefusal(TooManyDomainHosts, "more than %d hosts of %s",
			s.cfg.MaxHostsPerDomain, domain))
	case storage.HostLimitReached:
		return outOfScopeError(u, newRefusal(TooManyHosts, "more than %d hosts", s.cfg.MaxHosts))
	case storage.NewHostsRefused:
		return outOfScopeError(u, newRefusal(LowMemory, "a new host, while memory is nearly used up"))
	}
	return nil
}

// refusalOf returns why the crawl would refuse a link to u because of its host, nil if it would
// not. It counts nothing. The crawl must have a scope.
func (h *hostCountLimiter) refusalOf(ctx context.Context, u decorum.URL) (refusal, err error) {
	count, err := h.store.AdmittedHostTotalsFor(ctx, newHostToAdmit(u.Origin().Host()))
	if err != nil {
		return nil, err
	}
	return h.scope.hostAdmissionError(u, h.admissionLimits().CheckNewHost(count, false)), nil
}

// hostsCountedNoteKey is the note that all hosts of the store are counted.
const hostsCountedNoteKey = "hosts_counted"

// IsStoreSpecificNote reports whether the note of that key and the zero Origin describes the store
// that holds it, so that an import must not copy it.
func IsStoreSpecificNote(key string) bool { return key == hostsCountedNoteKey }

// ensureHostsCounted counts the hosts of a store that an earlier version or an import has filled
// without counting them. It does so once for each store, and holds the names of all hosts in memory
// meanwhile.
func (h *hostCountLimiter) ensureHostsCounted(ctx context.Context) error {
	store, ok := h.store.(storage.Inspector)
	if !ok || h.scope == nil {
		return nil
	}
	if done, err := h.store.ReadNote(ctx, decorum.Origin{}, hostsCountedNoteKey); err != nil || len(done) > 0 {
		return err
	}
	// Collect the names first: the store must not be called while it lists origins.
	var names []string
	err := store.Origins(ctx, func(o storage.OriginInfo) bool {
		if o.SeenURLs+o.QueuedURLs > 0 { // otherwise no URL of the origin was ever queued
			names = append(names, o.Origin.Host())
		}
		return true
	})
	if err != nil {
		return err
	}
	// Empty limits count the hosts without refusing any.
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
