package httpfetch

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestOwnAddresses: the machine's own addresses are refused even if they are public. They are listed
// again after ownAddrsTTL; if listing fails, the last list is used.
func TestOwnAddresses(t *testing.T) {
	now, fails := []string{"1.1.1.1/24", "2606:4700::1111/64"}, false
	own := &ownAddrs{listAddrs: func() (all []net.Addr, err error) {
		if fails {
			return nil, errors.New("no interfaces")
		}
		for _, s := range now {
			ip, n, err := net.ParseCIDR(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return all, nil
	}}
	want := func(addr, why string) {
		t.Helper()
		if got := own.blockedAddrKind(netip.MustParseAddr(addr)); got != why {
			t.Errorf("%s is %q, want %q", addr, got, why)
		}
	}
	want("1.1.1.1", "this machine's own")
	want("2606:4700::1111", "this machine's own")
	want("1.1.1.2", "")
	want("127.0.0.1", "a loopback")
	now = []string{"1.1.1.2/24"}
	want("1.1.1.2", "")
	own.listedAt = own.listedAt.Add(-ownAddrsTTL)
	want("1.1.1.2", "this machine's own")
	want("1.1.1.1", "")
	fails, own.listedAt = true, time.Time{}
	want("1.1.1.2", "this machine's own")
	if own := mustNewCrawlDialer(Config{}); own.blockedAddrKind(netip.MustParseAddr("1.1.1.1")) != "" ||
		own.blockedAddrKind(netip.MustParseAddr("10.0.0.1")) == "" {
		t.Error("a dialer without allow_private does not check the kind of an address")
	}
}
