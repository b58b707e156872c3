package dialrules

import (
	"errors"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestCheckPort: the port of another service is refused, unless a rule of ConnectToRules names the
// port.
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
