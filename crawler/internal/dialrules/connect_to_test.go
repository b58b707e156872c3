package dialrules

import (
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
		{[]string{"a.test:::1", ":::2"}, "a.test", "80", "a.test:1"}, // the first match applies
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
	for _, bad := range []string{"", "a", "a:b", "a:b:c", "a:b:c:d:e", "::1:80:a:b:c", "a:b:c:80", "::c:99999", "::c:0",
		"::c:-1", "a:65536:c:80", "[::1]:80", "[fe80::1]:80", "[::1]:"} {
		if _, err := ParseConnectTo(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
