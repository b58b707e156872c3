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
	// maxCachedHosts is how many names of hosts are remembered.
	maxCachedHosts = 4096
	// maxAddrsPerHost is how many addresses of a host are tried.
	maxAddrsPerHost = 16
	// negativeTTL is for how long it is remembered that there is no such host.
	negativeTTL = 10 * time.Second
)

// cachingResolver looks up the addresses of hosts and remembers them for a while. Several
// that ask for the same host wait for one answer.
type cachingResolver struct {
	resolver *net.Resolver
	ttl      time.Duration
	mu       sync.Mutex // guards entries
	entries  map[string]*dnsEntry
}

// A dnsEntry is what a look-up brings. Until done is closed it is on its way.
type dnsEntry struct {
	done           chan struct{}
	addrs          []netip.Addr
	err            error
	lookupCanceled bool // the context of the caller ended before the answer came
	expires        time.Time
}

func newCachingResolver(r *net.Resolver, ttl time.Duration) *cachingResolver {
	return &cachingResolver{resolver: cmp.Or(r, net.DefaultResolver), ttl: ttl, entries: map[string]*dnsEntry{}}
}

// lookup returns the addresses of host, best first, at least one; an address is
// its own. The error is a *net.DNSError, or the cause of ctx.
func (n *cachingResolver) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	for {
		a, created := n.getOrCreate(host)
		if created {
			n.lookupIntoEntry(ctx, host, a)
			return a.addrs, a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !a.lookupCanceled {
			return a.addrs, a.err
		}
	}
}

// getOrCreate returns the answer that is known or awaited for host, or a new one that
// the caller is to ask for.
func (n *cachingResolver) getOrCreate(host string) (a *dnsEntry, created bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.entries[host]; a != nil && (a.isPending() || time.Now().Before(a.expires)) {
		return a, false
	}
	for name, old := range n.entries {
		if len(n.entries) < maxCachedHosts {
			break
		}
		if !old.isPending() {
			delete(n.entries, name)
		}
	}
	a = &dnsEntry{done: make(chan struct{})}
	n.entries[host] = a
	return a, true
}

func (a *dnsEntry) isPending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// lookupIntoEntry looks host up. What failed for the moment is not remembered.
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

// forget has host looked up anew the next time.
func (n *cachingResolver) forget(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.entries[host]; a != nil && !a.isPending() {
		delete(n.entries, host)
	}
}
