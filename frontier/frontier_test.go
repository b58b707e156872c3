package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// entries returns entries for n pages of host.
func entries(t *testing.T, host string, n int) []storage.Entry {
	t.Helper()
	es := make([]storage.Entry, n)
	for i := range es {
		es[i] = storage.Entry{URL: mustURL(t, fmt.Sprintf("http://%s/%d", host, i)), PriorityClass: storage.ClassNormal}
	}
	return es
}

func discover(t *testing.T, f *frontier.Frontier, es ...storage.Entry) {
	t.Helper()
	if _, err := f.Discover(t.Context(), es...); err != nil {
		t.Fatal(err)
	}
}

// ackDone acks a lease of a visit that ends now, after which the host rests.
func ackDone(t *testing.T, f *frontier.Frontier, l storage.Lease, delay time.Duration) {
	t.Helper()
	host := storage.HostState{Due: time.Now().Add(delay), LostVisitDelay: delay}
	if err := f.Ack(t.Context(), storage.Ack{Lease: l, Outcome: storage.Done, HostState: &host}); err != nil {
		t.Error(err)
	}
}

// The caller and the crawl are both notified of the offered URLs that are out of scope.
func TestDiscoverWithCallback(t *testing.T) {
	crawl, refused := 0, map[string]frontier.RefusalReason{}
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{
		Scope:     frontier.NewScope(frontier.ScopeConfig{MaxDepth: 1}, []decorum.URL{mustURL(t, "http://a.test/")}),
		OnRefused: func(storage.Entry, error) { crawl++ },
	})
	added, err := f.DiscoverReportingRefusals(t.Context(), func(e storage.Entry, err error) {
		refused[e.URL.String()] = frontier.RefusalReasonOf(err)
	},
		[]storage.Entry{{URL: mustURL(t, "http://a.test/x")}, {URL: mustURL(t, "http://a.test/x")},
			{URL: mustURL(t, "http://a.test/deep"), Depth: 2}, {URL: mustURL(t, "http://b.test/")}})
	if err != nil || added != 1 || crawl != 2 {
		t.Errorf("added %d, %v; the crawl was notified of %d", added, err, crawl)
	}
	want := map[string]frontier.RefusalReason{"http://a.test/deep": frontier.DeepLink,
		"http://b.test/": frontier.OutsideScope}
	if !maps.Equal(refused, want) {
		t.Errorf("notified of %v, want %v", refused, want)
	}
}

func TestDiscoverCleansJudgesAndDedupes(t *testing.T) {
	var discovered, refused, reasons []string
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{
		OnNewURLQueued: func(e storage.Entry) { discovered = append(discovered, e.URL.String()) },
		Scope: frontier.NewScope(frontier.ScopeConfig{MaxDepth: 1},
			[]decorum.URL{mustURL(t, "http://a.test/")}),
		CleanURL: func(u decorum.URL) decorum.URL {
			clean, _, _ := strings.Cut(u.String(), "?sid=")
			return mustURL(t, clean)
		},
		OnRefused: func(e storage.Entry, err error) {
			refused, reasons = append(refused, e.URL.String()), append(reasons, err.Error())
		},
	})
	offer := func(url string, depth int, source storage.Source) storage.Entry {
		return storage.Entry{URL: mustURL(t, url), Depth: depth, Source: source}
	}
	added, err := f.Discover(t.Context(),
		offer("http://a.test/x?sid=1", 0, storage.SourceSeed),
		offer("http://a.test/x?sid=2", 1, storage.SourceLink),
		offer("http://a.test/deep", 2, storage.SourceLink),
		offer("http://b.test/", 1, storage.SourceLink),
		offer("http://cdn.test/sitemap.xml?sid=1", 9, storage.SourcePrerequisite)) // prerequisites may go to any host
	if err != nil || added != 2 {
		t.Errorf("added %d, %v; want 2", added, err)
	}
	if want := []string{"http://a.test/deep", "http://b.test/"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q (%q), want %q", refused, reasons, want)
	}
	var got []string
	for range added {
		l, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l.URL.String())
	}
	slices.Sort(got)
	slices.Sort(discovered)
	want := []string{"http://a.test/x", "http://cdn.test/sitemap.xml?sid=1"}
	if !slices.Equal(got, want) || !slices.Equal(discovered, want) {
		t.Errorf("leased %q, and was notified of %q; want %q", got, discovered, want)
	}
}

// TestNextHandsOutWhatIsDue: with many workers and hosts that rest for 3 s, each visit begins
// exactly when its host is due, and at the end Next returns ErrEmpty to all workers.
func TestNextHandsOutWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, pages, workers, delay = 5, 20, 8, 3 * time.Second
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{})
		for h := range hosts {
			discover(t, f, entries(t, fmt.Sprintf("h%d.test", h), pages)...)
		}
		begin := time.Now()
		var mu sync.Mutex
		var visits int
		last := map[string]time.Time{}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					l, err := f.Next(t.Context())
					if errors.Is(err, frontier.ErrEmpty) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					visits++
					host := l.URL.Origin().Host()
					if at, ok := last[host]; ok && time.Since(at) != delay {
						t.Errorf("%s was leased %v after its last visit, want %v", l.URL, time.Since(at), delay)
					}
					last[host] = time.Now()
					mu.Unlock()
					ackDone(t, f, l, delay)
				}
			})
		}
		wg.Wait()
		if visits != hosts*pages {
			t.Errorf("%d visits, want %d", visits, hosts*pages)
		}
		if took := time.Since(begin); took != (pages-1)*delay {
			t.Errorf("took %v, want %v", took, (pages-1)*delay)
		}
	})
}

// TestNextWakes: a worker that waits for a URL of the next day gets a new URL at once.
func TestNextWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{LeaseTTL: 48 * time.Hour})
		discover(t, f, entries(t, "a.test", 2)...)
		first, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ackDone(t, f, first, 24*time.Hour)
		time.AfterFunc(time.Minute, func() { discover(t, f, entries(t, "b.test", 1)...) })
		begin := time.Now()
		if l, err := f.Next(t.Context()); err != nil || l.URL.Origin().Host() != "b.test" ||
			time.Since(begin) != time.Minute {
			t.Errorf("got %v, %v after %v; want b.test after a minute", l.URL, err, time.Since(begin))
		}
	})
}

// TestNextWaitsWhenEmpty: with WaitWhenEmpty, Next waits until Discover adds a URL.
func TestNextWaitsWhenEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{WaitWhenEmpty: true})
		for range 2 {
			begin := time.Now()
			time.AfterFunc(100*24*time.Hour, func() {
				discover(t, f, entries(t, fmt.Sprintf("h%d.test", begin.Unix()), 1)...)
			})
			l, err := f.Next(t.Context())
			if err != nil || time.Since(begin) != 100*24*time.Hour {
				t.Fatalf("%v after %v", err, time.Since(begin))
			}
			ackDone(t, f, l, 0)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("enough"))
		defer cancel()
		if _, err := f.Next(ctx); err == nil || err.Error() != "enough" {
			t.Errorf("a context that is done: %v, want its cause", err)
		}
	})
}

// A sharedStore is a store that other processes may change: Lease returns a PollAt.
type sharedStore struct{ storage.Store }

func (s sharedStore) Lease(ctx context.Context, now time.Time, ttl time.Duration,
	max int) ([]storage.Lease, storage.Wait, error) {
	leases, next, err := s.Store.Lease(ctx, now, ttl, max)
	next.PollAt = now.Add(time.Second)
	return leases, next, err
}

func TestNextSeesOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := sharedStore{memory.New(memory.Config{})}
		f := frontier.New(store, frontier.Config{LeaseTTL: 48 * time.Hour})
		discover(t, f, entries(t, "a.test", 2)...)
		first, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ackDone(t, f, first, 24*time.Hour)
		time.AfterFunc(time.Minute+time.Second/2, func() {
			// The Frontier does not know of this URL.
			if _, err := store.Add(t.Context(), entries(t, "b.test", 1), 0); err != nil {
				t.Error(err)
			}
		})
		begin := time.Now()
		if l, err := f.Next(t.Context()); err != nil || l.URL.Origin().Host() != "b.test" ||
			time.Since(begin) != 61*time.Second {
			t.Errorf("got %v, %v after %v; want b.test after 61 s", l.URL, err, time.Since(begin))
		}
	})
}

func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{})
		if _, err := f.Next(t.Context()); !errors.Is(err, frontier.ErrEmpty) {
			t.Errorf("an empty frontier: %v, want ErrEmpty", err)
		}
		es := entries(t, "a.test", 1)
		discover(t, f, es...)
		origin, until := es[0].URL.Origin(), time.Now().Add(time.Hour)
		if err := f.Hold(t.Context(), origin, until, true); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Next(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Errorf("only a suspended origin is left: %v, want ErrOnlySuspendedLeft", err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("enough"))
		defer cancel()
		if err := f.Hold(t.Context(), origin, until, false); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Next(ctx); err == nil || err.Error() != "enough" {
			t.Errorf("a context that is done: %v, want its cause", err)
		}
		if l, err := f.Next(t.Context()); err != nil || time.Now() != until {
			t.Errorf("%v, %v at %v: want the lease at %v", l.URL, err, time.Now(), until)
		}
	})
}

func TestWaitForSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{WaitForRevisitsAndSuspensions: true})
		es := entries(t, "a.test", 1)
		discover(t, f, es...)
		if err := f.Hold(t.Context(), es[0].URL.Origin(), time.Now().Add(time.Hour), true); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := f.Next(t.Context()); err != nil || time.Since(begin) != time.Hour {
			t.Errorf("%v after %v, want a lease after an hour", err, time.Since(begin))
		}
	})
}

// A tenASecondBudget allows one visit each 100 ms.
type tenASecondBudget struct{ next time.Time }

func (b *tenASecondBudget) AvailableVisits(now time.Time, _ int) (int, time.Duration) {
	if wait := b.next.Sub(now); wait > 0 {
		return 0, wait
	}
	return 1, 0
}

// TestBudget: the budget limits the visits to all hosts together.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &tenASecondBudget{}
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{Budget: budget})
		for h := range 100 {
			discover(t, f, entries(t, fmt.Sprintf("h%d.test", h), 1)...)
		}
		begin := time.Now()
		for range 100 {
			if _, err := f.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			budget.next = time.Now().Add(100 * time.Millisecond)
		}
		if took := time.Since(begin).Round(time.Millisecond); took != 9900*time.Millisecond {
			t.Errorf("100 leases at 10 a second took %v, want 9.9s", took)
		}
	})
}

// TestBudgetAtTheEnd: if the budget is used up, Next still reports an empty frontier at once, and
// waits for the budget if URLs are left.
func TestBudgetAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &tenASecondBudget{}
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{Budget: budget})
		discover(t, f, entries(t, "a.test", 2)...)
		for i, waits := range []time.Duration{0, time.Hour} {
			begin := time.Now()
			l, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited != waits {
				t.Errorf("lease %d came after %v, want %v", i, waited, waits)
			}
			ackDone(t, f, l, 0)
			budget.next = time.Now().Add(time.Hour)
		}
		begin := time.Now()
		if _, err := f.Next(t.Context()); !errors.Is(err, frontier.ErrEmpty) || time.Since(begin) > 0 {
			t.Errorf("it ended after %v with %v", time.Since(begin), err)
		}
	})
}

// TestMaxWait: no Next waits for longer than MaxNextWait, whatever is left.
func TestMaxWait(t *testing.T) {
	for _, tt := range []struct {
		maxWait time.Duration
		wait    bool
		want    error
	}{
		{24 * time.Hour, false, frontier.ErrOnlySuspendedLeft},
		{48 * time.Hour, false, nil},
		{0, false, nil},
		{24 * time.Hour, true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := frontier.New(memory.New(memory.Config{}),
				frontier.Config{MaxNextWait: tt.maxWait, WaitForRevisitsAndSuspensions: tt.wait})
			discover(t, f, entries(t, "a.test", 2)...)
			begin := time.Now()
			l, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ackDone(t, f, l, 48*time.Hour)
			if _, err := f.Next(t.Context()); !errors.Is(err, tt.want) {
				t.Errorf("%+v: %v", tt, err)
			}
			if waited := time.Since(begin); (waited > 0) != (tt.want == nil) {
				t.Errorf("%+v: it waited for %v", tt, waited)
			}
		})
	}
}
