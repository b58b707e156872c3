package collyfetch

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Ports of other services are refused, unless a rule of ConnectToRules names the port.
func TestCheckPort(t *testing.T) {
	for _, tt := range []struct {
		url, rule string
		refused   bool
	}{
		{"http://a.test/", "", false},
		{"https://a.test:8443/", "", false},
		{"http://a.test:22/", "", true},
		{"https://a.test:25/", "", true},
		{"http://[2001:db8::1]:6379/", "", true},
		{"http://a.test:11211/", "", true},
		{"http://a.test:10080/", "", true},
		{"ftp://a.test/", "", false},
		{"http://a.test:21/", "", true},
		{"ftp://a.test:25/", "", true},
		{"http://a.test:22/", "a.test:22::", false},
		{"http://a.test:22/", "b.test:22::", true},
		{"http://a.test:22/", "::127.0.0.1:8080", false},
		{"http://a.test:22/", "a.test::127.0.0.1:", true},
	} {
		u, err := decorum.ParseURL(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		var rules []ConnectTo
		if tt.rule != "" {
			if rules, err = ParseConnectToRules([]string{tt.rule}); err != nil {
				t.Fatal(err)
			}
		}
		if err := CheckPort(u.Origin(), rules); errors.Is(err, decorum.Forbidden) != tt.refused {
			t.Errorf("%s with the rule %q: %v", tt.url, tt.rule, err)
		}
	}
}

// The machine's own addresses are refused though they are public. They are listed
// again from time to time, and kept if that fails.
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
	if own := mustNewCrawlDialer(Config{}); own.blockedAddrKind(netip.MustParseAddr("1.1.1.1")) != "" || own.blockedAddrKind(netip.MustParseAddr("10.0.0.1")) == "" {
		t.Error("a network without allow_private does not look at the kind of an address")
	}
}
