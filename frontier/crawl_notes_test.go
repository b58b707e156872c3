package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A storeOfProcesses is a store that several processes use: Lease says when to look for their changes. It counts
// how often its notes are listed.
type storeOfProcesses struct {
	*memory.Store
	isShared bool
	listings *int
}

func (s storeOfProcesses) Lease(ctx context.Context, now time.Time, ttl time.Duration,
	limit int) ([]storage.Lease, storage.Wait, error) {
	leases, wait, err := s.Store.Lease(ctx, now, ttl, limit)
	if s.isShared {
		wait.PollAt = now.Add(time.Second)
	}
	return leases, wait, err
}

func (s storeOfProcesses) OriginNotes(ctx context.Context, o decorum.Origin, yield func(string, []byte) bool) error {
	*s.listings++
	return s.Store.OriginNotes(ctx, o, yield)
}

// TestNotesOfOtherProcesses: a Frontier reads closed patterns and redirects of seeds once at the start, and
// every minute if other processes use its store.
func TestNotesOfOtherProcesses(t *testing.T) {
	for _, isShared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared %v", isShared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listings := 0
				store := storeOfProcesses{memory.New(memory.Config{}), isShared, &listings}
				scope := func() *frontier.Scope {
					return frontier.NewScope(frontier.ScopeConfig{Mode: frontier.HostScope,
						SeedRedirects: frontier.AnyScope, MaxDuplicatesPerPattern: 20},
						[]decorum.URL{mustURL(t, "http://a.test/")})
				}
				here, there := frontier.New(store, frontier.Config{Scope: scope()}), frontier.New(store,
					frontier.Config{Scope: scope()})
				discover := func(f *frontier.Frontier, u string) int {
					t.Helper()
					link := storage.Entry{URL: mustURL(t, u), Source: storage.SourceLink, Depth: 1}
					n, err := f.Discover(t.Context(), link)
					if err != nil {
						t.Fatal(err)
					}
					return n
				}
				if n := discover(here, "http://a.test/first"); n != 1 {
					t.Fatalf("%d URLs are queued", n)
				}
				if _, err := here.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				if listings != 1 {
					t.Errorf("the notes were listed %d times at the start, want once", listings)
				}
				// The other process closes a pattern and follows a redirect of the seed.
				for i := range 30 {
					u := mustURL(t, fmt.Sprintf("http://a.test/copy/%d", i))
					if err := there.RecordPage(t.Context(), u, true); err != nil {
						t.Fatal(err)
					}
				}
				extendScope(t, there, "http://a.test/", "http://www.test/", true)
				if discover(here, "http://a.test/copy/100") != 1 || discover(here, "http://www.test/x") != 0 {
					t.Error("the notes are read before the interval is over: the test has lost its point")
				}
				time.Sleep(time.Minute)
				want := 0
				if isShared {
					want = 1
				}
				if n := discover(here, "http://www.test/y"); n != want {
					t.Errorf("after a minute, %d links to the site of the redirect are queued, want %d", n, want)
				}
				if n := discover(here, "http://a.test/copy/101"); n != 1-want {
					t.Errorf("after a minute, %d links of the closed pattern are queued, want %d", n, 1-want)
				}
			})
		})
	}
}
