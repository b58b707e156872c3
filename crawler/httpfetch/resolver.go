package httpfetch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxCachedHosts is how many hosts the cache holds.
	maxCachedHosts = 4096
	// maxAddrsPerHost is how many addresses of a host are kept and tried.
	maxAddrsPerHost = 16
	// negativeTTL is how long the cache remembers that a host does not exist, at most.
	negativeTTL = 10 * time.Second
)

// A cachingResolver looks up the addresses of hosts and caches them for ttl. Concurrent callers that
// need the same host share one lookup.
type cachingResolver struct {
	resolver *net.Resolver
	ttl      time.Duration
	mu       sync.Mutex // guards entries
	entries  map[string]*dnsEntry
}

// A dnsEntry is a lookup and its result. The lookup is under way until done is closed; the other
// fields are valid after that.
type dnsEntry struct {
	done chan struct{}
	lookupResult
	err            error
	lookupCanceled bool // the caller's context ended before the answer came
}

// A lookupResult has the addresses of a host.
type lookupResult struct {
	host    string
	addrs   []netip.Addr // best first and at least one
	expires time.Time    // when the host must be looked up again; zero for an IP address, which stays valid
}

func newCachingResolver(r *net.Resolver, ttl time.Duration) *cachingResolver {
	return &cachingResolver{resolver: cmp.Or(r, net.DefaultResolver), ttl: ttl, entries: map[string]*dnsEntry{}}
}

// lookup returns the addresses of host; for an IP address it returns that address. The error is a
// *net.DNSError or the cause of ctx.
func (n *cachingResolver) lookup(ctx context.Context, host string) (lookupResult, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return lookupResult{host: host, addrs: []netip.Addr{a}}, nil
	}
	for {
		a, created := n.getOrCreate(host)
		if created {
			n.lookupIntoEntry(ctx, host, a)
			return a.lookupResult, a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return lookupResult{}, context.Cause(ctx)
		}
		// The caller that made the lookup gave up: look the host up for this caller instead.
		if !a.lookupCanceled {
			return a.lookupResult, a.err
		}
	}
}

// getOrCreate returns the entry for host if it is valid or its lookup is under way. Otherwise it
// returns a new entry and true, and the caller must call lookupIntoEntry.
func (n *cachingResolver) getOrCreate(host string) (a *dnsEntry, created bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.entries[host]; a != nil && (a.isPending() || time.Now().Before(a.expires)) {
		return a, false
	}
	// Make space by dropping arbitrary entries whose lookup is over.
	for name, old := range n.entries {
		if len(n.entries) < maxCachedHosts {
			break
		}
		if !old.isPending() {
			delete(n.entries, name)
		}
	}
	a = &dnsEntry{done: make(chan struct{}), lookupResult: lookupResult{host: host}}
	n.entries[host] = a
	return a, true
}

// isPending reports whether the lookup is under way.
func (a *dnsEntry) isPending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// lookupIntoEntry looks host up, sets the fields of a and closes a.done. Temporary failures are not
// cached: they leave a.expires zero, and getOrCreate looks the host up again.
func (n *cachingResolver) lookupIntoEntry(ctx context.Context, host string, a *dnsEntry) {
	addrs, err := n.resolver.LookupNetIP(ctx, "ip", host)
	n.mu.Lock()
	defer n.mu.Unlock()
	defer close(a.done)
	a.addrs, a.err, a.lookupCanceled = addrs[:min(len(addrs), maxAddrsPerHost)], err, err != nil && ctx.Err() != nil
	for i := range a.addrs {
		a.addrs[i] = a.addrs[i].Unmap()
	}
	var failed *net.DNSError
	switch {
	case err == nil && len(addrs) == 0:
		a.err = &net.DNSError{Err: "no addresses", Name: host}
	case err == nil:
		a.expires = time.Now().Add(n.ttl)
	case errors.As(err, &failed) && failed.IsNotFound:
		a.expires = time.Now().Add(min(n.ttl, negativeTTL))
	}
}

// forget drops the entry of host, so that the next visit looks it up again.
func (n *cachingResolver) forget(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.entries[host]; a != nil && !a.isPending() {
		delete(n.entries, host)
	}
}
