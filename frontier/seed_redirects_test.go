package frontier_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// seedRedirectEntry returns the entry of target, to which redirects led from seed.
func seedRedirectEntry(t *testing.T, seed, target string) storage.Entry {
	t.Helper()
	return storage.Entry{URL: mustURL(t, target), Source: storage.SourceRedirect,
		SeedOrigin: mustURL(t, seed).Origin(), Redirects: 1}
}

// newScopedFrontier returns a Frontier of store and of these seeds, which excludes /secret.
func newScopedFrontier(t *testing.T, store storage.Store, mode frontier.ScopeMode, seeds ...string) *frontier.Frontier {
	t.Helper()
	cfg := frontier.ScopeConfig{Mode: mode, SeedRedirects: frontier.AnyScope,
		Exclude: []*regexp.Regexp{regexp.MustCompile("/secret")}}
	var urls []decorum.URL
	for _, s := range seeds {
		urls = append(urls, mustURL(t, s))
	}
	return frontier.New(store, frontier.Config{Scope: frontier.NewScope(cfg, urls)})
}

// extendScope calls ExtendScopeToSeedTarget for the visit of target.
func extendScope(t *testing.T, f *frontier.Frontier, seed, target string, want bool) {
	t.Helper()
	got, err := f.ExtendScopeToSeedTarget(t.Context(), seedRedirectEntry(t, seed, target))
	if err != nil || got != want {
		t.Errorf("from %s to %s: %v, %v; want %v", seed, target, got, err, want)
	}
}

// The end of a seed's redirects extends the scope by what the mode compares: here, in a process that
// already runs, and in a later run with the same seed.
func TestExtendScopeToSeedTarget(t *testing.T) {
	for mode, inside := range map[frontier.ScopeMode]map[string]bool{
		frontier.HostScope:   {"http://www.b.test/x": true, "https://www.b.test/": true, "http://b.test/": false},
		frontier.OriginScope: {"http://www.b.test/x": true, "https://www.b.test/": false},
		frontier.DomainScope: {"http://b.test/": true, "http://c.test/": false},
		frontier.PathScope:   {"http://www.b.test/x": true, "https://www.b.test/": true, "http://b.test/": false},
	} {
		store := memory.New(memory.Config{})
		f := newScopedFrontier(t, store, mode, "http://a.test/")
		other := newScopedFrontier(t, store, mode, "http://a.test/")
		if err := other.LoadSeedRedirects(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Redirects pass through any site, which stays outside, but not to an excluded URL.
		for target, want := range map[string]bool{"http://hop.test/": true, "http://www.b.test/secret": false} {
			if got := f.CheckScope(seedRedirectEntry(t, "http://a.test/", target)) == nil; got != want {
				t.Errorf("mode %v: a redirect of a seed to %s is in scope: %v", mode, target, got)
			}
		}
		if f.CheckScope(seedRedirectEntry(t, "http://z.test/", "http://hop.test/")) == nil {
			t.Errorf("mode %v: a redirect of another project's seed is in scope", mode)
		}
		extendScope(t, f, "http://a.test/", "http://a.test/here", false)
		extendScope(t, f, "http://z.test/", "http://www.b.test/", false)
		extendScope(t, f, "http://a.test/", "http://www.b.test/", true)
		extendScope(t, f, "http://a.test/", "http://www.b.test/again", false)
		// In a later run, Discover meets the site first.
		later := newScopedFrontier(t, store, mode, "http://a.test/")
		otherSeed := newScopedFrontier(t, store, mode, "http://z.test/")
		for text, want := range inside {
			e := storage.Entry{URL: mustURL(t, text), Source: storage.SourceLink, Depth: 1}
			if got := f.CheckScope(e) == nil; got != want {
				t.Errorf("mode %v: %s is in scope: %v, want %v", mode, text, got, want)
			}
			if got := other.CheckLeasedScope(t.Context(), e) == nil; got != want {
				t.Errorf("mode %v: %s is in the scope of another process: %v, want %v", mode, text, got, want)
			}
			if n := discoverURLs(t, later, storage.SourceLink, text); (n == 1) != want {
				t.Errorf("mode %v: a later run queued %d of %s", mode, n, text)
			}
			if otherSeed.CheckLeasedScope(t.Context(), e) == nil {
				t.Errorf("mode %v: %s is in the scope of another seed", mode, text)
			}
		}
		if f.CheckScope(storage.Entry{URL: mustURL(t, "http://hop.test/link")}) == nil {
			t.Errorf("mode %v: a site between joined the scope", mode)
		}
	}
}

// In PathScope, the directory at the end of a seed's redirects joins the scope, also in other processes and
// in later runs, but no page above the directory of a seed.
func TestSeedRedirectsInPathScope(t *testing.T) {
	const seed = "http://a.test/docs/old/"
	store := memory.New(memory.Config{})
	f := newScopedFrontier(t, store, frontier.PathScope, seed)
	other := newScopedFrontier(t, store, frontier.PathScope, seed)
	if err := other.LoadSeedRedirects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckScope(seedRedirectEntry(t, seed, "http://a.test/")); err != nil {
		t.Error(err)
	}
	extendScope(t, f, seed, "http://a.test/", false)
	extendScope(t, f, seed, "http://a.test/docs/index.html?a=/b/", false)
	extendScope(t, f, seed, "http://a.test/docs/old/page", false)
	extendScope(t, f, seed, "http://a.test/docs/new/?p=/x/", true)
	extendScope(t, f, seed, "http://www.b.test/docs/"+strings.Repeat("x", 1100)+"/", false)
	extendScope(t, f, seed, "http://www.b.test/docs/", true)
	extendScope(t, f, seed, "http://www.b.test/docs/again", false)
	later := newScopedFrontier(t, store, frontier.PathScope, seed)
	for text, want := range map[string]bool{
		"http://a.test/docs/new/x/y": true, "http://www.b.test/docs/x/y?z": true, "http://www.b.test/docs": false,
		"http://www.b.test/docs2/": false, "http://a.test/docs/": false, "http://a.test/": false,
	} {
		e := storage.Entry{URL: mustURL(t, text), Source: storage.SourceLink, Depth: 1}
		for name, f := range map[string]*frontier.Frontier{"this": f, "another": other, "a later": later} {
			if got := f.CheckLeasedScope(t.Context(), e) == nil; got != want {
				t.Errorf("%s is in the scope of %s process: %v, want %v", text, name, got, want)
			}
		}
	}
	// A run in another mode has the sites; one in PathScope ignores sites without a directory.
	wide := newScopedFrontier(t, store, frontier.HostScope, seed)
	if err := wide.CheckLeasedScope(t.Context(), storage.Entry{URL: mustURL(t, "http://www.b.test/x")}); err != nil {
		t.Error(err)
	}
	extendScope(t, wide, seed, "http://c.test/", true)
	narrow := newScopedFrontier(t, store, frontier.PathScope, seed)
	if narrow.CheckLeasedScope(t.Context(), storage.Entry{URL: mustURL(t, "http://c.test/x")}) == nil {
		t.Error("a redirect to a host, from a run in another mode, has extended PathScope")
	}
}

// Frontiers may share a Scope, but not the redirects.
func TestSharedScopeIsNotExtended(t *testing.T) {
	scope := frontier.NewScope(frontier.ScopeConfig{SeedRedirects: frontier.DomainScope},
		[]decorum.URL{mustURL(t, "http://a.test/")})
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{Scope: scope})
	extendScope(t, f, "http://a.test/", "http://www.b.test/", false) // beyond SeedRedirects
	extendScope(t, f, "http://a.test/", "http://www.a.test/", true)
	e := storage.Entry{URL: mustURL(t, "http://www.a.test/x")}
	if err := f.CheckScope(e); err != nil {
		t.Error(err)
	}
	if err := f.Scope().Check(e); err != nil {
		t.Error(err)
	}
	if scope.Check(e) == nil {
		t.Error("the shared Scope was extended")
	}
}

// Two seeds redirect to one page. A later run with the second alone still has that site, whether the
// first had led there before or afterwards.
func TestTwoSeedsRedirectToOnePage(t *testing.T) {
	for _, secondIsLate := range []bool{false, true} {
		store := memory.New(memory.Config{})
		f := newScopedFrontier(t, store, frontier.HostScope, "http://a.test/", "http://b.test/")
		redirect := func(seed string, want int) {
			t.Helper()
			n, err := f.DiscoverRedirect(t.Context(), seedRedirectEntry(t, seed, "http://www.c.test/"))
			if err != nil || n != want {
				t.Errorf("redirect of %s: %d new, %v; want %d", seed, n, err, want)
			}
		}
		redirect("http://a.test/", 1)
		if secondIsLate {
			extendScope(t, f, "http://a.test/", "http://www.c.test/", true)
		}
		redirect("http://b.test/", 0)
		later := newScopedFrontier(t, store, frontier.HostScope, "http://b.test/")
		e := storage.Entry{URL: mustURL(t, "http://www.c.test/x")}
		if got := later.CheckLeasedScope(t.Context(), e) == nil; got != secondIsLate {
			t.Errorf("before the page was visited is %v, and its site is in scope: %v", !secondIsLate, got)
		}
		if !secondIsLate {
			extendScope(t, f, "http://a.test/", "http://www.c.test/", true)
		}
		later = newScopedFrontier(t, store, frontier.HostScope, "http://b.test/")
		if err := later.CheckLeasedScope(t.Context(), e); err != nil {
			t.Errorf("a later run with the second seed: %v", err)
		}
	}
}
