package frontier_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

func mustParamCleaner(t testing.TB, rules frontier.ParamRules) *frontier.ParamCleaner {
	t.Helper()
	p, err := frontier.NewParamCleaner(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParamCleaner(t *testing.T) {
	for _, tt := range []struct {
		name       string
		rules      frontier.ParamRules
		path, want string
	}{
		{"no rules", frontier.ParamRules{}, "/p?b=2&a=1", "/p?b=2&a=1"},
		{"drop", frontier.ParamRules{Drop: []string{"ref"}}, "/p?ref=1&a=1&ref&reference=2", "/p?a=1&reference=2"},
		{"drop all there is", frontier.ParamRules{Drop: []string{"ref"}}, "/p?ref=1", "/p"},
		{"drop by prefix", frontier.ParamRules{Drop: []string{"utm_*"}}, "/p?utm_source=x&utm_=y&utm=z", "/p?utm=z"},
		{"drop by suffix and middle", frontier.ParamRules{Drop: []string{"*id", "a*b*c"}},
			"/?sid=1&id=2&idx=3&abc=4&axbxc=5&acb=6", "/?idx=3&acb=6"},
		{"a star takes nothing twice", frontier.ParamRules{Drop: []string{"ab*ba"}}, "/?aba=1&abba=2", "/?aba=1"},
		{"keep", frontier.ParamRules{Keep: []string{"id"}}, "/p?x=1&id=2&y=3", "/p?id=2"},
		{"keep goes before drop", frontier.ParamRules{Drop: []string{"s*"}, Keep: []string{"s"}},
			"/p?s=1&sid=2&x=3", "/p?s=1&x=3"},
		{"sort", frontier.ParamRules{Sort: true}, "/p?b=2&a=2&a=1&aa", "/p?a=2&a=1&aa&b=2"},
		{"case counts", frontier.ParamRules{Drop: []string{"Ref"}}, "/p?ref=1", "/p?ref=1"},
		{"names are as in URLs", frontier.ParamRules{Drop: []string{"é"}}, "/p?%C3%A9=1", "/p"},
		{"semicolon in path", frontier.ParamRules{}, "/p;JSESSIONID=A1;v=2/x;v=1", "/p;v=2/x;v=1"},
		{"segment of ASP.NET", frontier.ParamRules{}, "/app/(S(4xyz))/p", "/app/p"},
		{"segment with more letters", frontier.ParamRules{}, "/(A(x)S(4xyz)F(1))/", "/"},
		{"segment by name", frontier.ParamRules{}, "/PHPSESSID=0af/p", "/p"},
		{"the last segment", frontier.ParamRules{}, "/p/sid=7af09b21", "/p/"},
		{"the only segment", frontier.ParamRules{}, "/;jsessionid=1", "/"},
		{"no session", frontier.ParamRules{}, "/sid/sid=/;sid/(S())/(Songs)/session=1",
			"/sid/sid=/;sid/(S())/(Songs)/session=1"},
		{"short ids of other things", frontier.ParamRules{}, "/stations/sid=1042/x;sid=7",
			"/stations/sid=1042/x;sid=7"},
		{"PHP", frontier.ParamRules{}, "/p?a=1&PHPSESSID=0af91c&b=2&phpsessid=x", "/p?a=1&b=2"},
		{"Java", frontier.ParamRules{}, "/p?jsessionid=1A2B.node1", "/p"},
		{"ASP", frontier.ParamRules{}, "/p?ASPSESSIONIDQQRSTUVW=ABCDEF&aspsessionid=1&x", "/p?x"},
		{"shops", frontier.ParamRules{}, "/p?osCsid=9b1&zenid=7&id=3", "/p?id=3"},
		{"sid of a forum", frontier.ParamRules{}, "/viewtopic.php?t=2&sid=7c0d1e9f52a34b68d01f7ea952c8b3D4",
			"/viewtopic.php?t=2"},
		{"session_id that looks random", frontier.ParamRules{}, "/p?session_id=q7f3k2m9x1c8v5b4&sessionid=" +
			"0f0f0f0f0f0f0f0f", "/p"},
		{"short sid, number, title, UUID", frontier.ParamRules{},
			"/p?sid=1&sid=ab12cd34&sid=1234567890123456789&sid=international2024conference&session_id=" +
				"9b2e1f00-0000-4000-8000-00000000abcd",
			"/p?sid=1&sid=ab12cd34&sid=1234567890123456789&sid=international2024conference&session_id=" +
				"9b2e1f00-0000-4000-8000-00000000abcd"},
		{"no session in the query", frontier.ParamRules{}, "/p?id=0123456789abcdef&PHPSESSID=&PHPSESSID&ID&aid=1",
			"/p?id=0123456789abcdef&PHPSESSID=&PHPSESSID&ID&aid=1"},
		{"session IDs that the rules keep", frontier.ParamRules{Drop: []string{"ref"}, Keep: []string{"PHPSESSID"}},
			"/p?PHPSESSID=1a&ref=1&jsessionid=2", "/p?PHPSESSID=1a"},
		{"session IDs stay", frontier.ParamRules{Drop: []string{"ref"}, KeepSessionIDs: true},
			"/p;jsessionid=1?PHPSESSID=1a&ref=1", "/p;jsessionid=1?PHPSESSID=1a"},
		{"an empty query stays", frontier.ParamRules{Drop: []string{"ref"}, Sort: true}, "/p?", "/p?"},
		{"an empty query without rules", frontier.ParamRules{}, "/p;jsessionid=1?", "/p?"},
	} {
		p, u := mustParamCleaner(t, tt.rules), mustURL(t, "http://a.test"+tt.path)
		got := p.CleanURL(u)
		if got.PathAndQuery() != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got.PathAndQuery(), tt.want)
		}
		explained, changes := p.CleanURLAndExplain(u)
		if explained != got || (len(changes) > 0) != (got != u) {
			t.Errorf("%s: explained as %s by %v", tt.name, explained, changes)
		}
	}
	u := mustURL(t, "http://a.test/;jsessionid=1/?b=1&ref=2&a=3")
	_, changes := mustParamCleaner(t, frontier.ParamRules{Drop: []string{"ref"}, Sort: true}).CleanURLAndExplain(u)
	if diff := cmp.Diff([]frontier.AppliedCleaningRule{
		{Removed: ";jsessionid=1", Rule: "session id in the path"},
		{Removed: "ref=2", Rule: "params.drop: ref"}, {Rule: "params.sort"},
	}, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := (*frontier.ParamCleaner)(nil).CleanURL(mustURL(t,
		"http://a.test/x;jsessionid=1?b&a")); got.PathAndQuery() != "/x?b&a" {
		t.Errorf("without rules: %s", got)
	}
	for _, bad := range []string{"", "a=b", "a&b", "a#b"} {
		if _, err := frontier.NewParamCleaner(frontier.ParamRules{Keep: []string{bad}}); err == nil {
			t.Errorf("%q is accepted as a name", bad)
		}
	}
}

// FuzzParamCleaner: CleanURL is idempotent and keeps the origin.
func FuzzParamCleaner(f *testing.F) {
	for _, s := range []string{"http://a.test/;sid=1;sid=2/(S(a))/(S(b))?b&a&ref", "http://a.test//sid=1//?&&a=&=",
		"http://a.test/(S(sid=1))?*=1", "http://a.test/?PHPSESSID=1&&sid=7c0d1e9f52a34b68",
		"http://a.test/;sid=12345678?"} {
		f.Add(s, "ref", "a*", true)
	}
	f.Fuzz(func(t *testing.T, s, drop, keep string, sort bool) {
		u, err := decorum.ParseURL(s)
		p, err2 := frontier.NewParamCleaner(frontier.ParamRules{Drop: []string{drop}, Keep: []string{keep}, Sort: sort})
		if err != nil || err2 != nil {
			return
		}
		once := p.CleanURL(u)
		if twice := p.CleanURL(once); twice != once || once.Origin() != u.Origin() {
			t.Errorf("%s is cleaned to %s, and that to %s", u, once, twice)
		}
		if len(once.String()) > len(u.String()) {
			t.Errorf("%s is cleaned to the longer %s", u, once)
		}
	})
}

// TestDiscoverRewrites: a URL is cleaned by the project's rules before it is queued, and the URL it
// was first found under is kept.
func TestDiscoverRewrites(t *testing.T) {
	store := memory.New(memory.Config{})
	f := frontier.New(store, frontier.Config{ParamCleaner: mustParamCleaner(t,
		frontier.ParamRules{Drop: []string{"ref"}})})
	if n := discoverURLs(t, f, storage.SourceLink, "http://a.test/p?ref=1", "http://a.test/p;jsessionid=2?ref=2",
		"http://a.test/p"); n != 1 {
		t.Errorf("%d pages, want 1", n)
	}
	l, err := f.Next(t.Context())
	if err != nil || l.URL != mustURL(t, "http://a.test/p") || l.UncleanedURL != mustURL(t, "http://a.test/p?ref=1") {
		t.Errorf("leased %s, found as %s (%v)", l.URL, l.UncleanedURL, err)
	}
}

// TestUpgradeURL: after three pages in a row have redirected to https, later http links are queued
// as https links, until an https page fails.
func TestUpgradeURL(t *testing.T) {
	store := memory.New(memory.Config{})
	f := frontier.New(store, frontier.Config{})
	answered := func(u string, toHTTPS, failed bool) {
		t.Helper()
		if err := f.RecordHTTPSEvidence(t.Context(), mustURL(t, u), toHTTPS, failed); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	queuedAs := func(origin string) string {
		t.Helper()
		n++
		path := fmt.Sprintf("/%d", n)
		u, err := f.UpgradeIfOriginMovedToHTTPS(t.Context(), mustURL(t, origin+path))
		if err != nil {
			t.Fatal(err)
		}
		return u.String()[:len(u.String())-len(path)]
	}
	for _, tt := range []struct {
		do   func()
		want string // scheme of later links
	}{
		{func() { answered("http://a.test/a", true, false); answered("http://a.test/b", true, false) }, "http"},
		// interrupts the redirects in a row
		{func() { answered("http://a.test/c", false, false); answered("http://a.test/d", true, false) }, "http"},
		{func() { answered("http://a.test/e", true, false); answered("http://a.test/f", true, false) }, "https"},
		{func() { answered("https://a.test/e", false, false) }, "https"},
		{func() { answered("https://a.test:8443/e", false, true) }, "https"},
		{func() { f = frontier.New(store, frontier.Config{}) }, "https"}, // a restart
		{func() { answered("https://a.test/f", false, true) }, "http"},   // no answer, or a redirect back to http
		{func() {
			for _, p := range "abc" {
				answered("http://a.test/"+string(p), true, false)
			}
		}, "https"},
		{func() { answered("http://a.test/g", false, false) }, "http"}, // a URL that was queued before
	} {
		tt.do()
		if got := queuedAs("http://a.test"); got != tt.want+"://a.test" {
			t.Errorf("link %d is queued as %s, want %s", n, got, tt.want)
		}
	}
	for range 3 {
		answered("http://a.test/x", true, false)
		answered("http://a.test:8080/x", true, false)
	}
	for origin, want := range map[string]string{"http://b.test": "http://b.test",
		"http://a.test:8080": "http://a.test:8080", "https://a.test": "https://a.test"} {
		if got := queuedAs(origin); got != want {
			t.Errorf("%s is queued as %s", origin, got)
		}
	}
	if discoverURLs(t, f, storage.SourceLink, "http://a.test/new", "https://a.test/new") != 1 ||
		f.HTTPSUpgradeCount() != 1 {
		t.Errorf("%d upgrades, want 1", f.HTTPSUpgradeCount())
	}
}

// TestUpgradeURLWithinScope: a URL of the crawl is not lost because its https variant is out of
// scope.
func TestUpgradeURLWithinScope(t *testing.T) {
	for name, cfg := range map[string]frontier.ScopeConfig{
		"origin":  {Mode: frontier.OriginScope},
		"include": {Include: []*regexp.Regexp{regexp.MustCompile(`^http://a\.test/`)}},
		"exclude": {Exclude: []*regexp.Regexp{regexp.MustCompile(`^https:`)}},
	} {
		store := memory.New(memory.Config{})
		f := frontier.New(store, frontier.Config{Scope: frontier.NewScope(cfg,
			[]decorum.URL{mustURL(t, "http://a.test/")})})
		for range 3 {
			if err := f.RecordHTTPSEvidence(t.Context(), mustURL(t, "http://a.test/account"), true, false); err != nil {
				t.Fatal(err)
			}
		}
		if n := discoverURLs(t, f, storage.SourceLink, "http://a.test/page"); n != 1 {
			t.Errorf("%s: the page is refused: %v", name, f.RefusalsByReason())
		}
	}
}

// TestUpgradeURLByOrigin: answers on other ports do not count for the default ports, and a host
// with a final dot is a separate origin.
func TestUpgradeURLByOrigin(t *testing.T) {
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{})
	for _, host := range []string{"a.test", "b.test."} {
		for range 3 {
			if err := f.RecordHTTPSEvidence(t.Context(), mustURL(t, "http://"+host+"/"), true, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for answered, want := range map[string]string{"https://a.test:8443/": "https://a.test/x",
		"https://b.test./": "http://b.test./x"} {
		if err := f.RecordHTTPSEvidence(t.Context(), mustURL(t, answered), false, true); err != nil {
			t.Fatal(err)
		}
		link := "http://" + want[strings.Index(want, "//")+2:]
		if got, err := f.UpgradeIfOriginMovedToHTTPS(t.Context(), mustURL(t, link)); err != nil ||
			got.String() != want {
			t.Errorf("after %s failed, %s is queued as %s (%v), want %s", answered, link, got, err, want)
		}
	}
}
