package collyfetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxNames is how many names of hosts are remembered.
	maxNames = 4096
	// maxAddresses is how many addresses of a host are tried.
	maxAddresses = 16
	// negativeTTL is for how long it is remembered that there is no such host.
	negativeTTL = 10 * time.Second
)

// names looks up the addresses of hosts and remembers them for a while. Several
// that ask for the same host wait for one answer.
type names struct {
	resolver *net.Resolver
	ttl      time.Duration
	mu       sync.Mutex
	answers  map[string]*answer
}

// An answer is what a look-up brings. Until done is closed it is on its way.
type answer struct {
	done     chan struct{}
	addrs    []netip.Addr
	err      error
	deserted bool // who asked has gone before the answer came
	until    time.Time
}

func newNames(r *net.Resolver, ttl time.Duration) *names {
	if r == nil {
		r = net.DefaultResolver
	}
	return &names{resolver: r, ttl: ttl, answers: map[string]*answer{}}
}

// lookup returns the addresses of host, best first, at least one; an address is
// its own. The error is a *net.DNSError, or the cause of ctx.
func (n *names) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	for {
		a, mine := n.take(host)
		if mine {
			n.ask(ctx, host, a)
			return a.addrs, a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !a.deserted {
			return a.addrs, a.err
		}
	}
}

// take returns the answer that is known or awaited for host, or a new one that
// the caller is to ask for.
func (n *names) take(host string) (a *answer, mine bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.answers[host]; a != nil && (a.pending() || time.Now().Before(a.until)) {
		return a, false
	}
	for name, old := range n.answers {
		if len(n.answers) < maxNames {
			break
		}
		if !old.pending() {
			delete(n.answers, name)
		}
	}
	a = &answer{done: make(chan struct{})}
	n.answers[host] = a
	return a, true
}

func (a *answer) pending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// ask looks host up. What failed for the moment is not remembered.
func (n *names) ask(ctx context.Context, host string, a *answer) {
	addrs, err := n.resolver.LookupNetIP(ctx, "ip", host)
	n.mu.Lock()
	defer n.mu.Unlock()
	defer close(a.done)
	a.addrs, a.err, a.deserted = addrs[:min(len(addrs), maxAddresses)], err, err != nil && ctx.Err() != nil
	for i := range a.addrs {
		a.addrs[i] = a.addrs[i].Unmap()
	}
	var failed *net.DNSError
	switch {
	case err == nil && len(addrs) == 0:
		a.err = &net.DNSError{Err: "no addresses", Name: host}
	case err == nil:
		a.until = time.Now().Add(n.ttl)
	case errors.As(err, &failed) && failed.IsNotFound:
		a.until = time.Now().Add(min(n.ttl, negativeTTL))
	}
}

// forget has host looked up anew the next time.
func (n *names) forget(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.answers[host]; a != nil && !a.pending() {
		delete(n.answers, host)
	}
}
