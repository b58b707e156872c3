package frontier

import (
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// linkEntries returns entries of source SourceLink.
func linkEntries(t *testing.T, urls ...string) (entries []storage.Entry) {
	t.Helper()
	for _, u := range urls {
		entries = append(entries, storage.Entry{URL: parseURL(t, u), Source: storage.SourceLink})
	}
	return entries
}

// TestHostLimiter: hosts beyond the limit of their domain are refused and counted, others are not,
// and an admitted host stays admitted.
func TestHostLimiter(t *testing.T) {
	var refusals refusalCounter
	h := hostCountLimiter{store: memory.New(memory.Config{}), scope: NewScope(ScopeConfig{MaxHostsPerDomain: 1}, nil),
		refusals: &refusals, recentlyAdmitted: newBoundedTextSet(8)}
	for range 2 {
		refused := 0
		in, err := h.filter(t.Context(), func(storage.Entry, error) { refused++ },
			linkEntries(t, "http://a.test/", "http://www.a.test/", "http://b.test/"))
		if err != nil || len(in) != 2 || in[0].URL.Origin().Host() != "a.test" ||
			in[1].URL.Origin().Host() != "b.test" || refused != 1 {
			t.Errorf("%d entries, %d refused, %v: want a.test and b.test", len(in), refused, err)
		}
	}
	if n := refusals.countsByReason()[TooManyDomainHosts]; n != 2 {
		t.Errorf("%d refusals are counted, want 2", n)
	}
	low := false
	h.isMemoryLow = func() bool { return low }
	for _, low = range []bool{false, true} {
		if refusal, err := h.refusalOf(t.Context(), parseURL(t, "http://c.test/")); err != nil ||
			(refusal != nil) != low {
			t.Errorf("memory is low: %v: a new host is refused by %v, %v", low, refusal, err)
		}
	}
}

// TestPatternLimiter: the URLs of a pattern are limited. A URL that the store has seen passes and
// is not counted again.
func TestPatternLimiter(t *testing.T) {
	var refusals refusalCounter
	store := memory.New(memory.Config{})
	addURLs(t, store, "http://a.test/p/0")
	l := urlCountLimiter{maxURLs: 2, groupKey: entryPatternKey, newRefusal: newPatternRefusal, seen: store,
		refusals: &refusals}
	entries := linkEntries(t, "http://a.test/p/0", "http://a.test/p/1", "http://a.test/p/2", "http://a.test/p/3",
		"http://a.test/q", "http://b.test/p/3")
	in, err := l.filter(t.Context(), entries)
	var got []string
	for _, e := range in {
		got = append(got, e.URL.String())
	}
	if want := "[http://a.test/p/0 http://a.test/p/1 http://a.test/p/2 http://a.test/q http://b.test/p/3]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("filter returns %v, %v, want %v", got, err, want)
	}
	if n := refusals.countsByReason()[TooManyPatternURLs]; n != 1 {
		t.Errorf("%d refusals are counted, want 1", n)
	}
}

// TestRefusalCounter: each count is added to the note once, and each refusal is reported.
func TestRefusalCounter(t *testing.T) {
	store, reported := memory.New(memory.Config{}), 0
	why := outOfScopeError(parseURL(t, "http://a.test/"), newRefusal(DeepPath, "too deep"))
	for run := 1; run <= 2; run++ {
		s := refusalCounter{noteKey: refusalsNoteKey, onRefused: func(storage.Entry, error) { reported++ }}
		s.countAndReport(storage.Entry{URL: parseURL(t, "http://a.test/")}, why)
		for range 2 {
			if err := s.save(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
		list, err := LoadRefusalCounts(t.Context(), store)
		want := RefusalCount{Host: "a.test", Reason: DeepPath, Count: int64(run),
			Why: "too deep", Example: "http://a.test/"}
		if err != nil || len(list) != 1 || list[0] != want || reported != run {
			t.Errorf("%+v, %v, %d reported; want %+v", list, err, reported, want)
		}
	}
}

// TestHTTPSUpgradeTracker: an origin three of whose pages in a row redirect to https has moved
// there, also for another tracker of the same notes, until one of its https pages does not answer.
func TestHTTPSUpgradeTracker(t *testing.T) {
	notes := memory.New(memory.Config{})
	page, secure := parseURL(t, "http://a.test/p"), parseURL(t, "https://a.test/p")
	want := func(tracker *httpsUpgradeTracker, want decorum.URL) {
		t.Helper()
		e := storage.Entry{URL: page}
		if err := tracker.upgradeEntry(t.Context(), &e); err != nil || e.URL != want ||
			e.HTTPSUpgradeTried != (want == secure) {
			t.Errorf("the entry is of %v (tried: %v), %v; want %v", e.URL, e.HTTPSUpgradeTried, err, want)
		}
	}
	first := &httpsUpgradeTracker{notes: notes}
	for range redirectsToUpgrade {
		want(first, page)
		if !first.isKnownToStayHTTP(page) {
			t.Error("a page is not known to stay")
		}
		if err := first.recordEvidence(t.Context(), page, true, false); err != nil {
			t.Fatal(err)
		}
	}
	want(first, secure)
	if first.isKnownToStayHTTP(page) || first.upgradeCount.Load() != 1 {
		t.Errorf("%d upgrades", first.upgradeCount.Load())
	}
	want(&httpsUpgradeTracker{notes: notes}, secure)
	want(&httpsUpgradeTracker{notes: notes, scope: NewScope(ScopeConfig{Mode: OriginScope}, []decorum.URL{page})}, page)
	if err := first.recordEvidence(t.Context(), secure, false, true); err != nil {
		t.Fatal(err)
	}
	want(first, page)
	want(&httpsUpgradeTracker{notes: notes}, page)
}

// TestSeenCache: the cache remembers the pages that the store holds, within its capacity, and is
// empty after a reset.
func TestSeenCache(t *testing.T) {
	c := seenCache{newBoundedTextSet(8)}
	entries := linkEntries(t, "http://a.test/new", "http://a.test/known", "http://a.test/refused")
	c.addStored(entries, []storage.AddOutcome{storage.Added, storage.Duplicate, storage.OverLimit})
	for i, want := range []bool{true, true, false} {
		if u := entries[i].URL.String(); c.contains(u) != want {
			t.Errorf("%v is remembered: %v, want %v", u, !want, want)
		}
	}
	remembered := 0
	for i := range 20 {
		c.add(fmt.Sprint(i))
	}
	for i := range 20 {
		if c.contains(fmt.Sprint(i)) {
			remembered++
		}
	}
	if remembered == 0 || remembered > 8 {
		t.Errorf("%d texts are remembered, with room for 8", remembered)
	}
	if c.reset(); c.contains("19") {
		t.Error("a text is remembered after a reset")
	}
}
