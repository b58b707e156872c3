package gate

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestOneLookup proves FETCH-31: if 100 workers check URLs of a new origin, one fetches the robots.txt
// and 99 have to wait.
func TestOneLookup(t *testing.T) {
	s := newGateTest(t, Config{})
	var asked, waits atomic.Int32
	var winner Clearance
	var all sync.WaitGroup
	for i := range 100 {
		page := robotstest.URL(t, fmt.Sprintf("https://example.com/b%d", i))
		all.Go(func() {
			c, err := s.check(page)
			switch {
			case err == nil && c.IsForRobots():
				asked.Add(1)
				winner = c
			case errors.Is(err, decorum.Pending):
				waits.Add(1)
			default:
				t.Errorf("Check(%v) = %v, %v", page, c.URL(), err)
			}
		})
	}
	all.Wait()
	if asked.Load() != 1 || waits.Load() != 99 {
		t.Fatalf("%d fetch, %d wait; want 1 and 99", asked.Load(), waits.Load())
	}
	s.recordFetch(winner, respondWith(200, someRules)(winner.URL()))
	s.wantCheck(robotstest.URL(t, "https://example.com/b"), pageCleared)
}

// TestFetchInFlight proves which caller may fetch the robots.txt of an origin, and until when.
func TestFetchInFlight(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	lost := s.wantRobotsFetch(page)
	_, err := s.wantCheck(page, pending)
	var postponed *OriginPostponedError
	if !errors.As(err, &postponed) || !postponed.Until.Equal(s.now.Add(2*time.Minute)) || postponed.Suspended {
		t.Errorf("postponed = %+v", postponed)
	}

	s.now = s.now.Add(2 * time.Minute) // the lease has expired
	forgotten := s.wantRobotsFetch(page)
	s.gate.CancelFetch(lost) // another Clearance has the lease
	s.wantCheck(page, pending)
	s.gate.CancelFetch(forgotten)

	c := s.wantRobotsFetch(page)
	for _, late := range []Clearance{lost, forgotten} {
		l := s.recordFetch(late, respondWith(404)(late.URL()))
		if l.HasRulesInForce || l.PostponedErr == nil || !l.PostponedErr.Until.Equal(s.now.Add(2*time.Minute)) {
			t.Errorf("result of a late answer: %+v", l)
		}
	}
	s.wantCheck(page, pending)
	s.recordFetch(c, respondWith(200, someRules)(c.URL()))
	if l := s.recordFetch(c, respondWith(500)(c.URL())); !l.HasRulesInForce || l.Outcome != OutcomeRules {
		t.Errorf("result of a second answer: %+v", l)
	}
	s.wantCheck(page, pageCleared)
}

// TestLateAnswerCounts proves that an answer counts after its lease has expired, unless another caller
// has taken the lease.
func TestLateAnswerCounts(t *testing.T) {
	s := newGateTest(t, Config{FetchLeaseTimeout: time.Minute})
	page := robotstest.URL(t, "https://example.com/b")
	c := s.wantRobotsFetch(page)
	s.now = s.now.Add(time.Hour)
	s.recordFetch(c, respondWith(404)(c.URL()))
	s.wantCheck(page, pageCleared)
}

// TestGatesShareNotes proves that a Gate does not fetch what another one has stored in the same notes.
func TestGatesShareNotes(t *testing.T) {
	a := newGateTest(t, Config{})
	b := *a
	b.restart()
	page := robotstest.URL(t, "https://example.com/b")
	both := func(want string) {
		t.Helper()
		a.wantCheck(page, want)
		b.wantCheck(page, want)
	}
	wait := func(d time.Duration) { a.now, b.now = a.now.Add(d), b.now.Add(d) }

	a.fetchRobots(page, respondWith(200, someRules))
	both(pageCleared)
	wait(day) // both copies are too old now
	b.fetchRobots(page, failDownload)
	both(unreachable)
	wait(5 * time.Minute)
	result := a.fetchRobots(page, redirectTo("https://b.test/r.txt"))
	both(pending)
	c := a.checkRedirect(result)
	a.recordFetch(c, respondWith(404)(c.URL()))
	both(pageCleared)
}

// TestShorterTTLIsKept proves that a Gate applies its own MaxTTL to answers that another Gate stored.
func TestShorterTTLIsKept(t *testing.T) {
	s := newGateTest(t, Config{MaxTTL: 7 * day})
	page := robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(page, respondWith(200, "Cache-Control", "max-age=604800"))
	s.now = s.now.Add(2 * day)
	s.wantCheck(page, pageCleared)
	s.gate = New(Config{}, s.notes)
	s.wantCheck(page, robotsFirst)
}

// TestOriginCacheIsBounded proves that origins beyond the limit are evicted and read again, except those
// whose robots.txt is being fetched.
func TestOriginCacheIsBounded(t *testing.T) {
	s := newGateTest(t, Config{MaxCachedOrigins: 10})
	origin := func(i int) decorum.URL { return robotstest.URL(t, fmt.Sprintf("https://h%d.test/b", i)) }
	claims := make([]Clearance, 5)
	for i := range claims {
		claims[i] = s.wantRobotsFetch(origin(i))
	}
	for i := 5; i < 200; i++ {
		s.fetchRobots(origin(i), respondWith(404))
	}
	if n := len(s.gate.cache.entries); n != 10 {
		t.Errorf("%d origins in memory, want 10", n)
	}
	for i, c := range claims {
		s.wantCheck(origin(i), pending)
		s.recordFetch(c, respondWith(404)(c.URL()))
	}
	for i := range 200 {
		s.wantCheck(origin(i), pageCleared)
		s.wantDelay(origin(i).Origin(), 0)
	}
	if n := len(s.gate.cache.entries); n != 10 {
		t.Errorf("%d origins in memory, want 10", n)
	}
}

// TestEvictedEntry proves that a goroutine that waits for the lock of an entry which is evicted
// meanwhile gets the same new entry as all other goroutines.
func TestEvictedEntry(t *testing.T) {
	o := robotstest.URL(t, "https://example.com/").Origin()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for range 500 {
		m := &New(Config{}, nil).cache
		old := m.getOrCreateLocked(o, now)
		got := make(chan *originEntry)
		coming := make(chan struct{})
		for range 2 {
			go func() {
				coming <- struct{}{}
				e := m.getOrCreateLocked(o, now)
				e.mu.Unlock()
				got <- e
			}()
			<-coming
		}
		old.evicted = true
		m.mu.Lock()
		delete(m.entries, o)
		m.mu.Unlock()
		old.mu.Unlock()
		if a, b := <-got, <-got; a != b || a == old {
			t.Fatalf("entries %p and %p after %p was evicted, want one new one", a, b, old)
		}
	}
}

// TestManyWorkers checks few origins with many workers and a cache that is too small for them. Each
// robots.txt is fetched once, by one worker at a time.
func TestManyWorkers(t *testing.T) {
	s := newGateTest(t, Config{MaxCachedOrigins: 3})
	const origins = 20
	var asked [origins]atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				n := i % origins
				page := robotstest.URL(t, fmt.Sprintf("https://h%d.test/b", n))
				c, err := s.check(page)
				switch {
				case errors.Is(err, decorum.Pending):
				case err != nil:
					t.Error(err)
				case c.IsForRobots():
					asked[n].Add(1)
					s.recordFetch(c, respondWith(200, someRules)(c.URL()))
				}
				if _, _, err := s.gate.DelayAndNextAllowedTime(t.Context(), page.Origin(), s.now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for n := range asked {
		if got := asked[n].Load(); got != 1 {
			t.Errorf("the robots.txt of origin %d was fetched %d times", n, got)
		}
	}
}

// BenchmarkGateCheck measures Check with known rules; in parallel, with as many workers as there are
// cores.
func BenchmarkGateCheck(b *testing.B) {
	s := newGateTest(b, Config{})
	pages := make([]decorum.URL, 1000)
	for i := range pages {
		pages[i] = robotstest.URL(b, fmt.Sprintf("https://h%d.test/catalog/lamps/%d.html", i, i))
		s.fetchRobots(pages[i], respondWith(200, someRules))
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s.check(pages[i%len(pages)])
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				s.check(pages[i%len(pages)])
			}
		})
	})
}
