package dialrules_test

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
)

func TestParseProxy(t *testing.T) {
	for s, want := range map[string]string{
		"http://p.test":               "http://p.test:80",
		"https://u:p@p.test/":         "https://u:p@p.test:443",
		"socks5://127.0.0.1":          "socks5://127.0.0.1:1080",
		"socks5h://[::1]:9050":        "socks5h://[::1]:9050",
		"ftp://geheim@p.test":         "",
		"geheim.test:3128":            "",
		"http://":                     "",
		"http://geheim@p.test:0":      "",
		"http://geheim@p.test:99999":  "",
		"http://geheim@p.test/path":   "",
		"http://p.test?geheim":        "",
		"http://geheim:%zz@p.test":    "",
		"http://p.test:geheim":        "",
		"http://geheim@p.test#anchor": "",
	} {
		u, err := dialrules.ParseProxy(s)
		switch {
		case want == "" && err == nil:
			t.Errorf("%s is accepted", s)
		case want == "" && strings.Contains(err.Error(), "geheim"):
			t.Errorf("the error repeats what may be a password: %v", err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%s is %v, %v; want %s", s, u, err, want)
		}
	}
}
