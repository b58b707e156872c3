package crawler_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// A town is a web of a.test, which answers 503 to pages below /busy, and asks to be
// left alone for an hour.
func town() *crawltest.Web {
	busy := crawltest.Status(503)
	busy.Header.Set("Retry-After", "3600")
	return crawltest.New(crawltest.Site{Host: "a.test", Others: pageOf(), Latency: crawltest.Latency{Base: 100 * time.Millisecond},
		Pages: map[string]crawltest.Page{"/busy/0": func(r crawltest.Request) crawltest.Answer {
			if r.Nth == 1 {
				return busy
			}
			return crawltest.HTML("")
		}}})
}

// neighbour returns a crawl from the store in a file, that shares hosts, rests and
// robots records with others.
func neighbour(t *testing.T, web *crawltest.Web, file string, hosts *politeness.Hosts, rests *crawler.Rests, seeds ...string) *crawler.Crawler {
	t.Helper()
	return neighbourOn(t, web, openBolt(t, file), hosts, rests, seeds...)
}

// neighbourOn is neighbour from a store that is open.
func neighbourOn(t *testing.T, web *crawltest.Web, store storage.Store, hosts *politeness.Hosts, rests *crawler.Rests, seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newDirect(t, web, store)
	c.Limits = hosts.Limits(politeness.LimitsConfig{})
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limits})
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	c.Gate = robots.NewGate(robots.GateConfig{Agent: agent}, rests.Store)
	c.Rests = rests
	plant(t, c, seeds...)
	return c
}

// TestARetryAfterIsForAll: the hour that one crawl was asked for is kept by one
// that comes later, in the same process, in the next one, and in one that goes on
// after this was killed.
func TestARetryAfterIsForAll(t *testing.T) {
	for _, next := range []string{"same process", "stopped", "killed"} {
		t.Run(next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, web, hosts := t.TempDir(), town(), politeness.NewHosts()
				shared := filepath.Join(dir, "robots.db")
				rests := &crawler.Rests{Store: openBolt(t, shared)}
				first := neighbour(t, web, filepath.Join(dir, "first.db"), hosts, rests, seedsOf(1, "a.test", "busy")...)
				ctx, stop := context.WithCancel(t.Context())
				acked := make(chan string, 1)
				first.Hooks.Acked = func(a storage.Ack) {
					if a.Outcome == storage.Later {
						acked <- killed(t, shared)
						stop()
					}
				}
				if err := first.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				switch file := <-acked; next {
				case "stopped":
					if err := rests.Store.Close(); err != nil {
						t.Fatal(err)
					}
					hosts, rests = politeness.NewHosts(), &crawler.Rests{Store: openBolt(t, shared), Restarted: time.Now()}
				case "killed":
					hosts, rests = politeness.NewHosts(), &crawler.Rests{Store: openBolt(t, file), Restarted: time.Now()}
				}
				second := neighbour(t, web, filepath.Join(dir, "second.db"), hosts, rests, seedsOf(3, "a.test", "x")...)
				if err := second.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				log := web.Log()
				if rest := log[2].Start.Sub(log[1].End); rest != time.Hour {
					t.Errorf("the second crawl came after %v, want an hour", rest)
				}
				if second.Stats().Pages != 3 {
					t.Errorf("%+v", second.Stats())
				}
				judged(t, web, time.Second)
			})
		})
	}
}

// TestShortRestsAreWaitedForAfterARestart: nobody knows of them, so that no host
// is visited before the longest of them is over.
func TestShortRestsAreWaitedForAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, begin := oneHost(time.Second), time.Now()
		rests := &crawler.Rests{Store: memory(), Restarted: begin}
		c := neighbour(t, web, filepath.Join(t.TempDir(), "frontier.db"), politeness.NewHosts(), rests, seedsOf(2, "a.test", "x")...)
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if first := log[0].Start.Sub(begin); first != 10*time.Second || len(log) != 3 {
			t.Errorf("%d requests, the first after %v, want 10s", len(log), first)
		}
		apart(t, log, time.Second)
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("took %v: a host was to wait once only", took)
		}
	})
}
