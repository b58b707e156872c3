package frontier_test

import (
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// hostURLs returns n URLs of different hosts, made from format.
func hostURLs(n int, format string) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf(format, i))
	}
	return urls
}

// TestMaxHostsPerDomain: the limit of a domain's hosts applies to all runs together, and the crawl
// of the admitted hosts continues.
func TestMaxHostsPerDomain(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope,
		MaxHostsPerDomain: 10}, nil)}
	f := frontier.New(store, cfg)
	if n := discoverURLs(t, f, storage.SourceLink, hostURLs(8, "http://h%d.wild.example/")...); n != 8 {
		t.Fatalf("%d hosts were added, want 8", n)
	}
	f = frontier.New(store, cfg) // a restart keeps the counts
	for _, source := range []storage.Source{storage.SourceLink, storage.SourceSitemap,
		storage.SourceFeed, storage.SourceRedirect} {
		discoverURLs(t, f, source, hostURLs(100, "http://h%d.wild.example/")...)
	}
	if c, err := store.Counts(t.Context()); err != nil || c.QueuedHosts != 10 {
		t.Errorf("%d hosts have URLs (%v), want 10", c.QueuedHosts, err)
	}
	if n := f.RefusalsByReason()[frontier.TooManyDomainHosts]; n != 4*90 {
		t.Errorf("%d sightings were refused, want 360", n)
	}
	if n := discoverURLs(t, f, storage.SourceLink, hostURLs(10, "https://h%d.wild.example/other")...); n != 10 {
		t.Errorf("%d URLs of known hosts were added, want 10", n)
	}
	if n := discoverURLs(t, f, storage.SourceLink, hostURLs(20, "http://good%d.example/")...); n != 20 {
		t.Errorf("%d hosts of other domains were added, want 20", n)
	}
	if n := discoverURLs(t, f, storage.SourceSeed, "http://seed.wild.example/"); n != 1 {
		t.Error("a seed is refused")
	}
	if n := discoverURLs(t, f, storage.SourceLink, "http://seed.wild.example/more"); n != 1 {
		t.Error("a link to a seed's host is refused")
	}
}

// A domain that generates hosts takes one line of the report, not one for each host.
func TestRefusedHostsAreCountedByDomain(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope, MaxHostsPerDomain: 1},
		nil)}
	f := frontier.New(store, cfg)
	discoverURLs(t, f, storage.SourceLink, hostURLs(50, "http://h%d.wild.example/")...)
	if err := f.SaveRefusalAndSessionIDCounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, err := frontier.LoadRefusalCounts(t.Context(), store)
	if err != nil || len(counts) != 1 {
		t.Fatalf("kept %+v (%v), want one", counts, err)
	}
	want := frontier.RefusalCount{Host: "wild.example", Reason: frontier.TooManyDomainHosts, Count: 49,
		Why: "more than 1 hosts of wild.example", Example: "http://h1.wild.example/"}
	if counts[0] != want {
		t.Errorf("kept %+v, want %+v", counts[0], want)
	}
}

// TestMaxHosts: the limit of hosts applies to all domains together.
func TestMaxHosts(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope, MaxHosts: 10}, nil)}
	f := frontier.New(store, cfg)
	if n := discoverURLs(t, f, storage.SourceLink, hostURLs(25, "http://d%d.example/")...); n != 10 {
		t.Errorf("%d hosts were added, want 10", n)
	}
	if n := f.RefusalsByReason()[frontier.TooManyHosts]; n != 15 {
		t.Errorf("%d were refused, want 15", n)
	}
	u := mustURL(t, "http://new.example/")
	if refusal, err := f.CheckLinkAgainstCountLimits(t.Context(), u); err != nil ||
		frontier.RefusalReasonOf(refusal) != frontier.TooManyHosts {
		t.Errorf("a link to %v: %v (%v), want a refusal", u, refusal, err)
	}
	if refusal, err := f.CheckLinkAgainstCountLimits(t.Context(), mustURL(t, "https://d3.example/x")); err != nil ||
		refusal != nil {
		t.Errorf("refusal at a known host: %v (%v)", refusal, err)
	}
}

// While memory is nearly used up, new hosts are refused and the crawl of known ones continues.
func TestLowMemoryAdmitsNoNewHost(t *testing.T) {
	low := false
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{
		Scope:       frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope}, nil),
		IsMemoryLow: func() bool { return low }})
	discoverURLs(t, f, storage.SourceLink, "http://a.example/")
	low = true
	if n := discoverURLs(t, f, storage.SourceLink, "http://a.example/2", "https://a.example/",
		"http://b.example/"); n != 2 {
		t.Errorf("%d URLs were added, want the 2 of the known host", n)
	}
	if n := f.RefusalsByReason()[frontier.LowMemory]; n != 1 {
		t.Errorf("%d were refused, want 1", n)
	}
	low = false
	if n := discoverURLs(t, f, storage.SourceLink, "http://b.example/"); n != 1 {
		t.Error("a new host is refused although memory is free again")
	}
}

// The hosts of a store that has not counted them are counted once, when a run resumes.
func TestCountHosts(t *testing.T) {
	store := memory.New(memory.Config{})
	free := frontier.New(store, frontier.Config{}) // no scope: nothing is counted
	discoverURLs(t, free, storage.SourceLink, hostURLs(5, "http://h%d.wild.example/")...)
	f := frontier.New(store, frontier.Config{
		Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope, MaxHostsPerDomain: 3}, nil)})
	for range 2 {
		if err := f.EndSuspensionsExcept(t.Context(), func(storage.OriginInfo) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if n := discoverURLs(t, f, storage.SourceLink, hostURLs(8, "http://h%d.wild.example/x")...); n != 5 {
		t.Errorf("%d URLs were added, want those of the 5 earlier hosts", n)
	}
	h := storage.HostToAdmit{Host: "h1.wild.example", Domain: "wild.example"}
	if got, err := store.AdmittedHostTotalsFor(t.Context(), h); err != nil || got.DomainHosts != 5 {
		t.Errorf("%+v (%v), want 5 hosts", got, err)
	}
}
