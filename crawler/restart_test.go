package crawler_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// openBolt opens a store, which is closed with the test.
func openBolt(t *testing.T, file string) storage.Store {
	t.Helper()
	s, err := bolt.Open(file, bolt.Options{FlushEvery: time.Minute}) // each flush costs an fsync in real time
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openNotes opens a file of notes, which is closed with the test.
func openNotes(t *testing.T, file string) *bolt.NoteStore {
	t.Helper()
	n, err := bolt.OpenNotes(file, bolt.Options{FlushEvery: time.Minute}) // each flush costs an fsync in real time
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// copyStoreFile copies the file of an open store: what another process would find after a kill.
func copyStoreFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "killed.db")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestKilledCrawlLeavesHostsAlone: after a kill, the next process keeps a Retry-After of 3600 s and
// the host's consecutive failures; the other hosts rest, and so does the address that all of them
// share.
func TestKilledCrawlLeavesHostsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", "3600")
		sites, seeds := onePageSites(3, crawltest.Latency{Base: 100 * time.Millisecond})
		sites[0].Pages = map[string]crawltest.PageFunc{
			"/": func(r crawltest.PageRequest) crawltest.Response {
				switch r.NthForURL {
				case 1:
					return busy
				case 2:
					return crawltest.Status(503)
				}
				return crawltest.HTML("")
			}}
		// keeps the address in use
		sites[1].Pages = map[string]crawltest.PageFunc{"/": pageWithLinks(numberedPaths(2000)...)}
		web := crawltest.New(sites...)
		file := filepath.Join(t.TempDir(), "frontier.db")
		cfg := politeness.LimiterConfig{IPConcurrency: 1, IPDelay: 3 * time.Second}
		ctx, kill := context.WithTimeout(t.Context(), 10*time.Minute)
		defer kill()
		if err := newLimitedCrawl(t, addressedWeb{web, oneAddress}, openBolt(t, file), cfg,
			seeds...).Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		before, began := len(web.Log()), time.Now()
		cfg.RestartedAt = began
		next := newLimitedCrawl(t, addressedWeb{web, oneAddress}, openBolt(t, copyStoreFile(t, file)), cfg)
		ctx, stop := context.WithTimeout(t.Context(), 80*time.Minute)
		defer stop()
		if err := next.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		log := web.Log()
		if pause := log[before].Start.Sub(began); pause < 3*time.Second {
			t.Errorf("the first request came %v after the restart, within the rest of the address", pause)
		}
		if maxConcurrent, gap, _ := measureConcurrency(log); maxConcurrent > 1 || gap < 3*time.Second {
			t.Errorf("%d at a time, %v apart", maxConcurrent, gap)
		}
		exchanges := hostLog(log, "h0.test")
		if len(exchanges) != 4 {
			t.Fatalf("h0.test was asked %d times, want for robots.txt and three times for the page", len(exchanges))
		}
		if gap := exchanges[2].Start.Sub(exchanges[1].End); gap < time.Hour {
			t.Errorf("it was asked again after %v, want an hour", gap)
		}
		if gap := exchanges[3].Start.Sub(exchanges[2].End); gap < 10*time.Second {
			t.Errorf("after its second failure it rested for %v, want 10 s: the first one was forgotten", gap)
		}
		checkPoliteness(t, web, time.Second)
	})
}
