package collyfetch

import (
	"net/netip"
	"testing"
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
		rules, err := ParseConnectToRules(tt.rules)
		if err != nil {
			t.Fatal(err)
		}
		if h, p := ApplyConnectTo(rules, tt.host, tt.port); h+":"+p != tt.want {
			t.Errorf("%v: %s:%s goes to %s:%s, want %s", tt.rules, tt.host, tt.port, h, p, tt.want)
		}
	}
	for _, bad := range []string{"", "a", "a:b", "a:b:c", "a:b:c:d:e", "::1:80:a:b:c", "a:b:c:80", "::c:99999", "::c:0", "::c:-1", "a:65536:c:80"} {
		if _, err := ParseConnectTo(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestNonPublicKind(t *testing.T) {
	for kind, addrs := range map[string][]string{
		"a loopback":         {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"},
		"a private":          {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd00::1", "::ffff:10.0.0.1"},
		"a link-local":       {"169.254.0.1", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "ff01::1"},
		"a multicast":        {"239.1.2.3", "ff0e::1"},
		"an unspecified":     {"0.0.0.0", "::"},
		"a cloud's metadata": {"169.254.169.254", "::ffff:169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"},
		"a reserved": {"0.1.2.3", "100.64.0.1", "100.127.255.255", "::ffff:100.64.0.1", "192.0.0.1", "192.0.2.1", "192.88.99.1",
			"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "240.0.0.1", "255.255.255.255",
			"::7f00:1", "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1",
			"2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1", "3fff::1", "100::1", "fec0::1", "4000::1", "5f00::1"},
		"": {"93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:2800:220:1::1", "2001:200::1", "2003::1"},
	} {
		for _, a := range addrs {
			if got := nonPublicKind(netip.MustParseAddr(a).Unmap().WithZone("")); got != kind {
				t.Errorf("%s is %q, want %q", a, got, kind)
			}
		}
	}
}
