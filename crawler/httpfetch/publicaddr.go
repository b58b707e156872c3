package httpfetch

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// reservedIPv4 are the IPv4 ranges that are not public and for which netip has no predicate (IANA's
// registry of special-purpose addresses).
var reservedIPv4 = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by the customers of a carrier (CGNAT)
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
}

// globalUnicastIPv6 is the public part of IPv6 (RFC 4291, section 2.4), except for reservedIPv6. It
// excludes ranges that lead to IPv4 addresses: IPv4-compatible ones (::/96), translated ones
// (::ffff:0:0:0/96) and NAT64 (64:ff9b::/96, /48).
var globalUnicastIPv6 = netip.MustParsePrefix("2000::/3")

// reservedIPv6 are the ranges of globalUnicastIPv6 that are not public.
var reservedIPv6 = []netip.Prefix{
	netip.MustParsePrefix("2001::/23"), // includes Teredo, which leads to IPv4 addresses
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4, which leads to IPv4 addresses
	netip.MustParsePrefix("3fff::/20"),
}

// cloudMetadataAddrs are the addresses where clouds serve a machine's credentials. Some of them look
// public; the others are listed so that the error names what they are.
var cloudMetadataAddrs = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // AWS, Azure, GCP and most others
	netip.MustParseAddr("169.254.170.2"),   // AWS, for containers
	netip.MustParseAddr("168.63.129.16"),   // Azure's wire server
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // GCP
}

// nonPublicKind returns what kind of address a is, with its article, or "" if a is public.
func nonPublicKind(a netip.Addr) string {
	switch {
	case slices.Contains(cloudMetadataAddrs, a):
		return "a cloud's metadata"
	case a.IsLoopback():
		return "a loopback"
	case a.IsPrivate():
		return "a private"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return "a link-local"
	case a.IsMulticast():
		return "a multicast"
	case a.IsUnspecified():
		return "an unspecified"
	}
	ranges := reservedIPv4
	if a.Is6() {
		ranges = reservedIPv6
	}
	if a.Is6() && !globalUnicastIPv6.Contains(a) ||
		slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return "a reserved"
	}
	return ""
}

// ownAddrsTTL is how long the list of the machine's addresses is used before it is read again: an
// interface may come or go during a crawl.
const ownAddrsTTL = 30 * time.Second

// ownAddrs are the addresses of this machine's interfaces. Services that listen on them
// may trust connections from the machine itself, even on a public address.
type ownAddrs struct {
	listAddrs func() ([]net.Addr, error) // net.InterfaceAddrs

	mu       sync.Mutex // guards addrs and listedAt
	addrs    []netip.Addr
	listedAt time.Time
}

// contains reports whether a is an address of this machine. If the interfaces cannot be listed, it
// uses the last list.
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

// blockedAddrKind returns the kind of an address to which no visit may connect, or "" if a visit may
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
