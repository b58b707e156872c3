package collyfetch

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/decorum-crawler/decorum"
)

func TestConnectTo(t *testing.T) {
	tests := []struct {
		rules      []string
		host, port string
		want       string
	}{
		{nil, "a.test", "80", "a.test:80"},
		{[]string{"a.test:80:127.0.0.1:8080"}, "a.test", "80", "127.0.0.1:8080"},
		{[]string{"a.test:80:127.0.0.1:8080"}, "b.test", "80", "b.test:80"},
		{[]string{"a.test:80:127.0.0.1:8080"}, "a.test", "443", "a.test:443"},
		{[]string{"A.test::127.0.0.1:8080"}, "a.test", "443", "127.0.0.1:8080"},
		{[]string{"::127.0.0.1:8080"}, "b.test", "443", "127.0.0.1:8080"},
		{[]string{":443::8443"}, "b.test", "443", "b.test:8443"},
		{[]string{"a.test::c.test:"}, "a.test", "443", "c.test:443"},
		{[]string{"[::1]:80:[::2]:81"}, "::1", "80", "::2:81"},
		{[]string{"a.test:::1", ":::2"}, "a.test", "80", "a.test:1"}, // the first that matches
	}
	for _, tt := range tests {
		var rules []ConnectTo
		for _, s := range tt.rules {
			r, err := ParseConnectTo(s)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		if h, p := redirect(rules, tt.host, tt.port); h+":"+p != tt.want {
			t.Errorf("%v: %s:%s goes to %s:%s, want %s", tt.rules, tt.host, tt.port, h, p, tt.want)
		}
	}
	for _, bad := range []string{"", "a", "a:b", "a:b:c", "a:b:c:d:e", "::1:80:a:b:c", "a:b:c:80", "::c:99999", "::c:0", "::c:-1", "a:65536:c:80"} {
		if _, err := ParseConnectTo(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestRefusePrivate(t *testing.T) {
	for _, addr := range []string{
		"127.0.0.1:80", "127.8.9.10:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "10.0.0.1:80", "172.16.0.1:80",
		"192.168.1.1:80", "[fd00::1]:80", "169.254.169.254:80", "[fe80::1]:80", "[::ffff:169.254.169.254]:80", "[::ffff:100.64.0.1]:80",
		"0.0.0.0:80", "[::]:80", "0.1.2.3:80", "100.64.0.1:80", "192.0.2.1:80", "198.18.0.1:80", "224.0.0.1:80",
		"255.255.255.255:80", "240.0.0.1:80", "[64:ff9b::7f00:1]:80", "[2002:7f00:1::]:80", "[2001:db8::1]:80",
		"[ff02::1]:80", "[2001::1]:80",
	} {
		if err := refusePrivate(netip.MustParseAddrPort(addr)); !errors.Is(err, decorum.Forbidden) {
			t.Errorf("%s: %v, want Forbidden", addr, err)
		}
	}
	for _, addr := range []string{"93.184.216.34:80", "8.8.8.8:443", "[2606:2800:220:1::1]:443", "172.32.0.1:80", "100.128.0.1:80"} {
		if err := refusePrivate(netip.MustParseAddrPort(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if why := notPublic(netip.MustParseAddr("127.0.0.1")); why != "a loopback" {
		t.Errorf("127.0.0.1 is %q", why)
	}
}
