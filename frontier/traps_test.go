package frontier_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// Each limit, by default and as configured, accepts the largest value within it and refuses the
// next.
func TestTraps(t *testing.T) {
	const year = 2030
	segments := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "/s%d", i)
		}
		return b.String()
	}
	params := func(n int) string { return "/?" + strings.TrimSuffix(strings.Repeat("a&", n), "&") }
	small := frontier.ScopeConfig{MaxParams: 2, MaxPathDepth: 3, MaxPathRepeats: 1, MaxRedirects: 1}
	for _, tt := range []struct {
		path   string
		cfg    frontier.ScopeConfig
		reason frontier.RefusalReason // "": in scope
	}{
		{segments(20), frontier.ScopeConfig{}, ""},
		{segments(20) + "/", frontier.ScopeConfig{}, ""},
		{segments(21), frontier.ScopeConfig{}, frontier.DeepPath},
		{"/a/b/c", small, ""},
		{"/a/b/c/d", small, frontier.DeepPath},
		{params(32), frontier.ScopeConfig{}, ""},
		{params(33), frontier.ScopeConfig{}, frontier.TooManyParams},
		{"/?a&b", small, ""},
		{"/?a&b&c", small, frontier.TooManyParams},
		{"/a/b/b", small, frontier.RepeatedPath},
		{"/a/b/a", small, ""},
		{"/2030/1/31", frontier.ScopeConfig{}, ""},
		{"/2040/12/31/x", frontier.ScopeConfig{}, ""},
		{"/2041/1/1", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/1583/1/1", frontier.ScopeConfig{}, ""},
		{"/1582/12/31", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/thread/3456/12", frontier.ScopeConfig{}, ""}, // a page of a thread
		{"/calendar/3456/12", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/event-calendar/x/2099/07/", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/3456/13/1", frontier.ScopeConfig{}, ""},
		{"/on/2099-07", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/on/2099-07-31", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/on/2099-07-32", frontier.ScopeConfig{}, ""},
		{"/on/2099-07-0", frontier.ScopeConfig{}, ""},
		{"/?day=2099-07-31", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/?month=7&year=2099", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/?item=2099", frontier.ScopeConfig{}, ""},
		{"/calendar?day=3456-01-01", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/?year=3456", frontier.ScopeConfig{}, frontier.FarCalendar},
		{"/2100/12/31", frontier.ScopeConfig{}, frontier.FarCalendar}, // an archive by decades
		{"/substances/7440-05-3", frontier.ScopeConfig{}, ""},         // palladium
		{"/parts/9100-12", frontier.ScopeConfig{}, ""},
		{"/offers?until=9999-12-31", frontier.ScopeConfig{}, ""},
		{"/changed?since=0001-01-01", frontier.ScopeConfig{}, ""},
		{"/on-this-day/1492/10/12", frontier.ScopeConfig{}, ""},
		{"/events/4711/2", frontier.ScopeConfig{}, ""}, // the second page of an event
	} {
		cfg := tt.cfg
		cfg.CurrentYear = year
		err := frontier.NewScope(cfg, []decorum.URL{mustURL(t, "http://a.test/")}).Check(
			storage.Entry{URL: mustURL(t, "http://a.test"+tt.path)})
		switch {
		case tt.reason == "" && err != nil:
			t.Errorf("%s: %v", tt.path, err)
		case tt.reason != "" && (!errors.Is(err, decorum.OutOfScope) || frontier.RefusalReasonOf(err) != tt.reason):
			t.Errorf("%s: %v (%s), want %s", tt.path, err, frontier.RefusalReasonOf(err), tt.reason)
		}
	}
	for maxRedirects, cfg := range map[int]frontier.ScopeConfig{10: {}, 1: small} {
		for _, source := range []storage.Source{storage.SourceRedirect, storage.SourcePrerequisite} {
			s := frontier.NewScope(cfg, []decorum.URL{mustURL(t, "http://a.test/")})
			e := storage.Entry{URL: mustURL(t, "http://a.test/"), Source: source, Redirects: maxRedirects}
			if err := s.Check(e); err != nil {
				t.Errorf("%d redirects: %v", maxRedirects, err)
			}
			e.Redirects++
			if err := s.Check(e); frontier.RefusalReasonOf(err) != frontier.TooManyRedirects {
				t.Errorf("%d redirects: %v", e.Redirects, err)
			}
		}
	}
	// Without CurrentYear no calendar is refused.
	if err := frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope},
		nil).Check(storage.Entry{URL: mustURL(t, "http://a.test/9999/1/1")}); err != nil {
		t.Error(err)
	}
}

// A path is refused if a sequence occurs more than MaxPathRepeats times in a row, and not if a
// segment merely recurs.
func TestRepeats(t *testing.T) {
	for _, tt := range []struct {
		path  string
		times int // repetitions in a row
	}{
		{"/", 1},
		{"/a", 1},
		{"/a/a/a", 3},
		{"/a/a/a/", 3},
		{"/a/a/a/a", 4},
		{"/start/a/a/a/a/end.html", 4},
		{"/a/b/a/b", 2},
		{"/a/b/a/b/a", 2}, // not yet the third time
		{"/a/b/a/b/a/b", 3},
		{"/x/y/x/y/x/y/x/y/z", 4},
		{"/start/a/b/c/a/b/c/a/b/c/a/b/c", 4},
		{"/1/2/3/4/5/6/7/8/1/2/3/4/5/6/7/8", 2},
		{"/1/2/3/4/5/6/7/8/9/1/2/3/4/5/6/7/8/9", 1}, // a sequence of nine is too long to be noticed
		{"/en/guide/en/index", 1},
		{"/a/x/a/y/a/z/a", 1},
		{"/q/u/e/e/n/s/q/u/a/r/e", 2},
		{"/shop/12/part/12/order/12/12", 2},
		{"/a/b/b/a/b/b/c", 2},
		{"/a/a/b/a/a/b", 2},
		{"/a//b//c", 1},
		{"/////", 1},
		{"/a//a//a", 3},
		{"/a//b/a/b///a/b", 3},
		{"/a/a?a/a/a/a", 2},
	} {
		u := storage.Entry{URL: mustURL(t, "http://a.test"+tt.path)}
		for maxRepeats := 1; maxRepeats <= 5; maxRepeats++ {
			cfg := frontier.ScopeConfig{Mode: frontier.AnyScope, MaxPathRepeats: maxRepeats}
			err := frontier.NewScope(cfg, nil).Check(u)
			refused := err != nil && frontier.RefusalReasonOf(err) == frontier.RepeatedPath
			if refused != (tt.times > maxRepeats) || refused != (err != nil) {
				t.Errorf("%s with MaxPathRepeats %d: %v, want it to count as %d times",
					tt.path, maxRepeats, err, tt.times)
			}
		}
	}
}

func TestURLPattern(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"/about", "/about"},
		{"/p/0", "/p/#"},
		{"/p/12345", "/p/#"},
		{"/p/page12.html?x=3&y=a", "/p/page#.html?x=#&y=a"},
		{"/2030-01-31", "/#-#-#"},
		{"/u/123e4567-e89b-12d3-a456-426614174000/x", "/u/#/x"},
		{"/u/beefbeef-beef-beef-beef-beefbeefbeef", "/u/#"},
		{"/h/deadbee1", "/h/#"},
		{"/h/deadbeef", "/h/deadbeef"}, // a word of letters
		{"/t/aGVsbG8gd29ybGQ1", "/t/#"},
		{"/t/mp3player", "/t/mp#player"},
		{"/%E4%BD%A0", "/%E4%BD%A0"}, // characters, not numbers
		{"/%E4%BD%A07", "/%E4%BD%A0#"},
		{"/%", "/%"},
	} {
		got, masked := frontier.URLPattern(tt.path)
		if got != tt.want || masked != (got != tt.path) {
			t.Errorf("%s: %s, %v, want %s", tt.path, got, masked, tt.want)
		}
		if again, _ := frontier.URLPattern(got); again != got {
			t.Errorf("%s: %s, then %s", tt.path, got, again)
		}
	}
}

// discoverURLs discovers links and returns how many were new.
func discoverURLs(t *testing.T, f *frontier.Frontier, source storage.Source, urls ...string) int {
	t.Helper()
	return discoverAs(t, f, storage.Entry{Source: source, PriorityClass: storage.ClassNormal}, urls...)
}

func numberedURLs(from, to int, format string) (urls []string) {
	for i := from; i < to; i++ {
		urls = append(urls, fmt.Sprintf(format, i))
	}
	return urls
}

// TestPatternLimit: the URLs of a pattern are limited, and each counts once however often it is
// found. URLs of seeds and sitemaps are queued beyond the limit.
func TestPatternLimit(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope,
		MaxURLsPerPattern: 10}, nil)}
	f := frontier.New(store, cfg)
	const days = "http://a.test/day/%d"
	for range 3 {
		for i := range 8 {
			discoverURLs(t, f, storage.SourceLink, fmt.Sprintf(days, i), fmt.Sprintf(days, i))
		}
	}
	if n := discoverURLs(t, f, storage.SourceLink, numberedURLs(0, 100, days)...); n != 2 {
		t.Errorf("%d more were added, want 2", n)
	}
	if got := f.RefusalsByReason()[frontier.TooManyPatternURLs]; got != 90 {
		t.Errorf("%d URLs were refused, want 90", got)
	}
	for _, same := range []string{"http://a.test/day/x", "http://a.test/day/1/x",
		"http://b.test/day/1", "https://b.test/day/1"} {
		if n := discoverURLs(t, f, storage.SourceLink, same); n != 1 {
			t.Errorf("%s was not added", same)
		}
	}
	if n := discoverURLs(t, f, storage.SourceSitemap, numberedURLs(200, 220, days)...); n != 20 {
		t.Errorf("%d URLs of a sitemap were added, want 20", n)
	}
	if n := discoverURLs(t, f, storage.SourceSeed, numberedURLs(300, 303, days)...); n != 3 {
		t.Errorf("%d seeds were added, want 3", n)
	}
	if n := discoverURLs(t, frontier.New(store, cfg), storage.SourceLink, numberedURLs(400, 500, days)...); n != 10 {
		t.Errorf("after a restart %d URLs were added, want as many as the limit", n)
	}
}

// TestHostLimit: the URLs of a host are limited over all runs together.
func TestHostLimit(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope, MaxURLsPerHost: 10},
		nil)}
	f := frontier.New(store, cfg)
	word := func(i int) string { return fmt.Sprintf("http://a.test/%s", strings.Repeat("x", i+1)) }
	for i := range 8 {
		discoverURLs(t, f, storage.SourceLink, word(i))
	}
	f = frontier.New(store, cfg)
	for range 2 {
		for i := range 12 {
			discoverURLs(t, f, storage.SourceSitemap, word(i))
		}
	}
	if n := f.RefusalsByReason()[frontier.TooManyHostURLs]; n != 2*2 {
		t.Errorf("%d sightings were refused, want 4", n)
	}
	if c, err := store.Counts(t.Context()); err != nil || c.SeenURLs != 10 {
		t.Errorf("%d URLs (%v), want 10", c.SeenURLs, err)
	}
	if n := discoverURLs(t, f, storage.SourceSeed, "http://a.test/seed"); n != 1 {
		t.Error("a seed is refused")
	}
	if n := discoverURLs(t, f, storage.SourceLink, "http://b.test/"); n != 1 {
		t.Error("another host is refused")
	}
}

// TestPatternsAreBounded: endless patterns do not exhaust the memory, and do not displace the
// pattern with the most URLs.
func TestPatternsAreBounded(t *testing.T) {
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{
		Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope, MaxURLsPerPattern: 5}, nil)})
	discoverURLs(t, f, storage.SourceLink, numberedURLs(0, 5, "http://a.test/day/%d")...)
	const words = "abcdefghijklmnopqrstuvwxyz"
	var others []string
	for i := range 110_000 {
		others = append(others, fmt.Sprintf("http://a.test/%c%c%c%c/1", words[i%26], words[i/26%26],
			words[i/676%26], words[i/17576%26]))
	}
	discoverURLs(t, f, storage.SourceLink, others...)
	if n := f.PatternCount(); n > 100_000 || n < 1000 {
		t.Errorf("%d patterns are counted", n)
	}
	if n := discoverURLs(t, f, storage.SourceLink, "http://a.test/day/6"); n != 0 {
		t.Error("the pattern with the most URLs was dropped")
	}
}
