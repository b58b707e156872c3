package frontier_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

func mustURL(t testing.TB, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestScope(t *testing.T) {
	docs := []*regexp.Regexp{regexp.MustCompile(`^https://www\.example\.co\.uk/docs/`)}
	pdf := []*regexp.Regexp{regexp.MustCompile(`\.pdf$`)}
	tests := []struct {
		name  string
		cfg   frontier.ScopeConfig
		url   string
		depth int
		why   string // "": in scope
	}{
		{"host is the default", frontier.ScopeConfig{}, "https://www.example.co.uk/a", 1, ""},
		{"host takes in any scheme and port", frontier.ScopeConfig{}, "http://www.example.co.uk:8080/a", 1, ""},
		{"host leaves out a sister", frontier.ScopeConfig{}, "https://shop.example.co.uk/a", 1,
			"another host than the seeds'"},
		{"host leaves out a suffix trick", frontier.ScopeConfig{}, "https://www.example.co.uk.evil.test/", 1,
			"another host than the seeds'"},
		{"origin leaves out another port", frontier.ScopeConfig{Mode: frontier.OriginScope},
			"https://www.example.co.uk:8443/", 1, "another origin than the seeds'"},
		{"origin leaves out another scheme", frontier.ScopeConfig{Mode: frontier.OriginScope},
			"http://www.example.co.uk/", 1, "another origin than the seeds'"},
		{"origin", frontier.ScopeConfig{Mode: frontier.OriginScope}, "https://www.example.co.uk:443/", 1, ""},
		{"domain takes in a sister", frontier.ScopeConfig{Mode: frontier.DomainScope},
			"https://shop.example.co.uk/", 1, ""},
		{"domain knows public suffixes", frontier.ScopeConfig{Mode: frontier.DomainScope}, "https://other.co.uk/", 1,
			"another domain than the seeds'"},
		{"domain leaves out an address", frontier.ScopeConfig{Mode: frontier.DomainScope}, "https://192.0.2.1/", 1,
			"another domain than the seeds'"},
		{"path", frontier.ScopeConfig{Mode: frontier.PathScope}, "http://www.example.co.uk/docs/x/y?z", 1, ""},
		{"path takes in its directory", frontier.ScopeConfig{Mode: frontier.PathScope},
			"https://www.example.co.uk/docs/", 1, ""},
		{"path leaves out the name without slash", frontier.ScopeConfig{Mode: frontier.PathScope},
			"https://www.example.co.uk/docs", 1, "outside the directories of the seeds"},
		{"path leaves out a longer name", frontier.ScopeConfig{Mode: frontier.PathScope},
			"https://www.example.co.uk/docs2/a", 1, "outside the directories of the seeds"},
		{"path leaves out its parent", frontier.ScopeConfig{Mode: frontier.PathScope},
			"https://www.example.co.uk/docs/../a", 1, "outside the directories of the seeds"},
		{"path ignores the query", frontier.ScopeConfig{Mode: frontier.PathScope},
			"https://www.example.co.uk/?/docs/", 1, "outside the directories of the seeds"},
		{"path leaves out another host", frontier.ScopeConfig{Mode: frontier.PathScope},
			"https://shop.example.co.uk/docs/", 1, "outside the directories of the seeds"},
		{"any", frontier.ScopeConfig{Mode: frontier.AnyScope}, "https://other.test/", 1, ""},
		{"the default depth", frontier.ScopeConfig{}, "https://www.example.co.uk/a", 32, ""},
		{"beyond the default depth", frontier.ScopeConfig{}, "https://www.example.co.uk/a", 33, "deeper than 32 links"},
		{"depth", frontier.ScopeConfig{MaxDepth: 2}, "https://www.example.co.uk/a", 3, "deeper than 2 links"},
		{"seeds only", frontier.ScopeConfig{MaxDepth: -1}, "https://www.example.co.uk/a", 1, "deeper than 0 links"},
		{"a seed of seeds only", frontier.ScopeConfig{MaxDepth: -1}, "https://www.example.co.uk/a", 0, ""},
		{"URL length", frontier.ScopeConfig{MaxURLLength: 30}, "https://www.example.co.uk/" + strings.Repeat("a", 5),
			1, "longer than 30 bytes"},
		{"URL length, just", frontier.ScopeConfig{MaxURLLength: 30}, "https://www.example.co.uk/" +
			strings.Repeat("a", 4), 1, ""},
		{"included", frontier.ScopeConfig{Include: docs}, "https://www.example.co.uk/docs/x", 1, ""},
		{"not included", frontier.ScopeConfig{Include: docs}, "https://www.example.co.uk/news", 1,
			"matches no include pattern"},
		{"ftp is off by default", frontier.ScopeConfig{}, "ftp://www.example.co.uk/a", 1,
			"ftp is not fetched unless a seed is on ftp, or fetch.ftp says so"},
		{"ftp", frontier.ScopeConfig{AllowFTP: true}, "ftp://www.example.co.uk/a", 1, ""},
		{"ftp elsewhere", frontier.ScopeConfig{AllowFTP: true}, "ftp://ftp.example.co.uk/a", 1,
			"another host than the seeds'"},
		{"excluded", frontier.ScopeConfig{Exclude: pdf}, "https://www.example.co.uk/a.pdf", 1,
			"matches an exclude pattern"},
		{"exclude beats include", frontier.ScopeConfig{Include: docs, Exclude: pdf},
			"https://www.example.co.uk/docs/a.pdf", 1, "matches an exclude pattern"},
	}
	seeds := []decorum.URL{mustURL(t, "https://www.example.co.uk/")}
	pathSeeds := []decorum.URL{mustURL(t, "https://www.example.co.uk/docs/index.html")}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := frontier.NewScope(tt.cfg, seeds)
			if tt.cfg.Mode == frontier.PathScope {
				s = frontier.NewScope(tt.cfg, pathSeeds)
			}
			err := s.Check(storage.Entry{URL: mustURL(t, tt.url), Depth: tt.depth})
			switch {
			case tt.why == "" && err != nil:
				t.Errorf("out of scope: %v", err)
			case tt.why != "" && !errors.Is(err, decorum.OutOfScope):
				t.Errorf("error %v, want OutOfScope: %s", err, tt.why)
			case tt.why != "" && !strings.HasSuffix(err.Error(), tt.why):
				t.Errorf("error %q does not say %q", err, tt.why)
			}
		})
	}
}

func TestParseScopeMode(t *testing.T) {
	for _, w := range []frontier.ScopeMode{frontier.OriginScope, frontier.HostScope,
		frontier.DomainScope, frontier.AnyScope, frontier.PathScope} {
		if got, err := frontier.ParseScopeMode(w.String()); err != nil || got != w {
			t.Errorf("%v: %v, %v", w, got, err)
		}
	}
	if _, err := frontier.ParseScopeMode("galaxy"); err == nil {
		t.Error("galaxy is accepted")
	}
}

// A seed on ftp allows ftp URLs, within the ScopeMode.
func TestScopeOfSeedOnFTP(t *testing.T) {
	seeds := []decorum.URL{mustURL(t, "https://www.example.test/"), mustURL(t, "ftp://ftp.example.test/")}
	s := frontier.NewScope(frontier.ScopeConfig{}, seeds)
	for url, want := range map[string]bool{
		"ftp://ftp.example.test/a": true, "ftp://www.example.test/a": true, "https://ftp.example.test/": true,
		"ftp://other.test/": false,
	} {
		if err := s.Check(storage.Entry{URL: mustURL(t, url)}); (err == nil) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestDeepChains: the next page of a list that is too deep has a reason of its own.
func TestDeepChains(t *testing.T) {
	s := frontier.NewScope(frontier.ScopeConfig{MaxDepth: 2}, []decorum.URL{mustURL(t, "http://a.test/")})
	for _, tt := range []struct {
		from, url string
		want      frontier.RefusalReason
	}{
		{"http://a.test/page/2", "http://a.test/page/3", frontier.DeepChain},
		{"http://a.test/list?page=2&x=1", "http://a.test/list?page=3&x=1", frontier.DeepChain},
		{"http://a.test/page/2", "http://a.test/item/3", frontier.DeepLink},
		{"http://a.test/about", "http://a.test/about", frontier.DeepLink},
		{"http://b.test/page/2", "http://a.test/page/3", frontier.DeepLink},
		{"", "http://a.test/page/3", frontier.DeepLink},
	} {
		err := s.Check(storage.Entry{URL: mustURL(t, tt.url), Depth: 3, Referrer: tt.from})
		if got := frontier.RefusalReasonOf(err); got != tt.want {
			t.Errorf("%s from %s: refused for %q, want %q", tt.url, tt.from, got, tt.want)
		}
	}
}
