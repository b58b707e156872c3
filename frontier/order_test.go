package frontier_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

func TestPriorityRank(t *testing.T) {
	for _, tt := range []struct {
		priority float64
		want     uint16
	}{{1, 0}, {0.5, 50}, {0.25, 75}, {0, 100}, {-1, 100}, {2, 0}, {math.NaN(), 100}, {math.Inf(1), 0}} {
		if got := frontier.PriorityRank(tt.priority); got != tt.want {
			t.Errorf("priority %v has rank %d, want %d", tt.priority, got, tt.want)
		}
	}
}

func TestDefaultOrder(t *testing.T) {
	for _, tt := range []struct {
		source storage.Source
		class  storage.PriorityClass
		rank   uint16
		depth  int
		want   storage.PriorityClass
		rankTo uint16
	}{
		{storage.SourceSeed, storage.ClassLate, 7, 0, storage.ClassEarly, 0},
		{storage.SourceSitemap, storage.ClassEarly, 30, 1, storage.ClassNormal, 30},
		{storage.SourceSitemap, storage.ClassEarly, 999, 1, storage.ClassNormal, 100},
		{storage.SourceFeed, storage.ClassEarly, 999, 1, storage.ClassNormal, 50},
		{storage.SourceLink, storage.ClassEarly, 7, 0, storage.ClassNormal, 101},
		{storage.SourceLink, storage.ClassNormal, 7, 3, storage.ClassNormal, 104},
		{storage.SourceLink, storage.ClassNormal, 7, math.MaxInt, storage.ClassNormal, math.MaxUint16},
		{storage.SourceRedirect, storage.ClassEarly, 7, 3, storage.ClassEarly, 7}, // as its source
		{storage.SourcePrerequisite, storage.ClassFirst, 7, 3, storage.ClassFirst, 7},
	} {
		e := storage.Entry{Source: tt.source, PriorityClass: tt.class, PriorityRank: tt.rank, Depth: tt.depth}
		if frontier.AssignDefaultOrder(&e); e.PriorityClass != tt.want || e.PriorityRank != tt.rankTo {
			t.Errorf("%v of depth %d: class %d, rank %d; want %d, %d", tt.source, tt.depth, e.PriorityClass,
				e.PriorityRank, tt.want, tt.rankTo)
		}
	}
}

// TestOrder: by default seeds go before URLs of sitemaps, which go by priority, and those before
// links, which go by depth. AssignOrder replaces that order.
func TestOrder(t *testing.T) {
	offered := []storage.Entry{
		{URL: mustURL(t, "http://a.test/deep"), Source: storage.SourceLink, Depth: 3},
		{URL: mustURL(t, "http://a.test/near"), Source: storage.SourceLink, Depth: 1},
		{URL: mustURL(t, "http://a.test/low"), Source: storage.SourceSitemap,
			PriorityRank: frontier.PriorityRank(0.1), Depth: 1},
		{URL: mustURL(t, "http://a.test/high"), Source: storage.SourceSitemap,
			PriorityRank: frontier.PriorityRank(0.9), Depth: 1},
		{URL: mustURL(t, "http://a.test/seed"), Source: storage.SourceSeed},
	}
	backwards := func(e *storage.Entry) {
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, uint16(len(e.URL.String()))
	}
	for _, tt := range []struct {
		name  string
		order func(*storage.Entry)
		want  string
	}{
		{"default", nil, "seed high low near deep"},
		{"the user's own", backwards, "low deep near high seed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := frontier.New(memory.New(memory.Config{}), frontier.Config{AssignOrder: tt.order})
				discover(t, f, offered...)
				var got []string
				for range offered {
					l, err := f.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, strings.TrimPrefix(l.URL.String(), "http://a.test/"))
					ackDone(t, f, l, time.Second)
				}
				if strings.Join(got, " ") != tt.want {
					t.Errorf("went %v, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestNextAwaitingRevisit: a foreground crawl ends when only revisits are left, and learns when the
// first is due; a daemon waits for it.
func TestNextAwaitingRevisit(t *testing.T) {
	for _, wait := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := frontier.New(memory.New(memory.Config{}), frontier.Config{WaitForRevisitsAndSuspensions: wait})
			discover(t, f, entries(t, "a.test", 1)...)
			l, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first := time.Now().Add(day)
			if err := f.Ack(t.Context(),
				storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: first}); err != nil {
				t.Fatal(err)
			}
			_, err = f.Next(t.Context())
			var awaiting *frontier.OnlyRevisitsLeftError
			switch {
			case wait && (err != nil || !time.Now().Equal(first)):
				t.Errorf("%v at %v, want the lease at %v", err, time.Now(), first)
			case !wait && (!errors.Is(err, frontier.ErrOnlyRevisitsLeft) || !errors.As(err, &awaiting) ||
				!awaiting.FirstRevisit.Equal(first)):
				t.Errorf("%v, want ErrOnlyRevisitsLeft until %v", err, first)
			}
		})
	}
}

// A holdRecorder records holds, and lists them as an Inspector.
type holdRecorder struct {
	storage.Store
	storage.Inspector
	holds map[decorum.Origin]storage.OriginInfo
}

func (l *holdRecorder) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	l.holds[o] = storage.OriginInfo{Origin: o, HeldUntil: until, Suspended: suspended}
	return l.Store.Hold(ctx, o, until, suspended)
}

func (l *holdRecorder) Origins(_ context.Context, yield func(storage.OriginInfo) bool) error {
	for _, o := range l.holds {
		if !yield(o) {
			break
		}
	}
	return nil
}

// TestReleaseHolds: origins that an earlier run suspended are leased at once, and origins held for
// other reasons are not.
func TestReleaseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &holdRecorder{Store: memory.New(memory.Config{}), holds: map[decorum.Origin]storage.OriginInfo{}}
		f := frontier.New(store, frontier.Config{})
		for host, suspended := range map[string]bool{"a.test": true, "b.test": false, "c.test": true} {
			es := entries(t, host, 1)
			discover(t, f, es...)
			if err := f.Hold(t.Context(), es[0].URL.Origin(), time.Now().Add(time.Hour), suspended); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.EndSuspensionsExcept(t.Context(), func(storage.OriginInfo) bool { return false }); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for i := range 3 {
			l, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ackDone(t, f, l, 0)
			if host, waited := l.URL.Origin().Host(), time.Since(begin); (host == "b.test") != (i == 2) ||
				i < 2 && waited > 0 || i == 2 && waited != time.Hour {
				t.Errorf("%s was leased after %v", host, waited)
			}
		}
	})
}

// TestRescheduleModified: a page that was modified after its visit is due at once, whichever of its
// URLs the sitemap contains; other pages keep resting.
func TestRescheduleModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := frontier.New(memory.New(memory.Config{}), frontier.Config{
			CleanURL: func(u decorum.URL) decorum.URL {
				clean, _, _ := strings.Cut(u.String(), "?sid=")
				return mustURL(t, clean)
			},
		})
		es := entries(t, "a.test", 3)
		discover(t, f, es...)
		visited := time.Now()
		for range es {
			l, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.VisitHistorySummary = &storage.VisitHistorySummary{VisitedAt: visited}
			if err := f.Ack(t.Context(),
				storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: visited.Add(day)}); err != nil {
				t.Fatal(err)
			}
		}
		n, err := f.RescheduleByLastmod(t.Context(),
			storage.SitemapLastmod{URL: mustURL(t, "http://a.test/1?sid=5"), Modified: visited.Add(time.Second)},
			storage.SitemapLastmod{URL: es[2].URL, Modified: visited.Add(-time.Second)},
			storage.SitemapLastmod{URL: mustURL(t, "http://a.test/unknown"), Modified: visited.Add(time.Second)})
		if err != nil || n != 1 {
			t.Errorf("rescheduled %d, %v; want 1", n, err)
		}
		l, err := f.Next(t.Context())
		if err != nil || l.URL != es[1].URL || !l.VisitHistorySummary.SitemapLastmod.Equal(visited.Add(time.Second)) {
			t.Errorf("%v, %+v, %v: want page 1, and when it was modified", l.URL, l.VisitHistorySummary, err)
		}
	})
}
