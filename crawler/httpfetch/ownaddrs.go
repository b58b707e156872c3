package httpfetch

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// ownAddrsTTL is how long the addresses of the machine are used before they are listed
// again: an interface may come or go while a crawl runs.
const ownAddrsTTL = 30 * time.Second

// ownAddrs are the addresses of this machine's interfaces. Services that listen on them
// may trust connections from the machine itself, even on a public address.
type ownAddrs struct {
	listAddrs func() ([]net.Addr, error) // net.InterfaceAddrs

	mu       sync.Mutex // guards the fields below
	addrs    []netip.Addr
	listedAt time.Time
}

// contains reports whether a is an address of this machine. If the interfaces cannot be
// listed, it uses the addresses of the last list.
func (o *ownAddrs) contains(a netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); o.listedAt.IsZero() || now.Sub(o.listedAt) >= ownAddrsTTL {
		if all, err := o.listAddrs(); err == nil {
			o.addrs = o.addrs[:0]
			for _, addr := range all {
				if p, err := netip.ParsePrefix(addr.String()); err == nil {
					o.addrs = append(o.addrs, p.Addr().Unmap().WithZone(""))
				}
			}
			o.listedAt = now
		}
	}
	return slices.Contains(o.addrs, a)
}

// blockedAddrKind names the kind of an address to which no visit may connect; "" if a visit may
// connect to it.
func (o *ownAddrs) blockedAddrKind(a netip.Addr) string {
	if why := nonPublicKind(a); why != "" {
		return why
	}
	if o.contains(a) {
		return "this machine's own"
	}
	return ""
}
