package collyfetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
)

// A queueProgram is a program with a queue, which records the queries of the URLs it requests.
type queueProgram struct {
	*queue.Queue

	mu        sync.Mutex // guards requested
	requested []string
}

// newQueueProgram returns a program whose queue has the URLs /mill?n=0 and so on.
func newQueueProgram(t *testing.T, threads, seeds int) *queueProgram {
	t.Helper()
	q, err := queue.New(threads, &queue.InMemoryQueueStorage{MaxSize: 10_000})
	must(t, err)
	for n := range seeds {
		must(t, q.AddURL(fmt.Sprintf("http://a.test/mill?n=%d", n)))
	}
	return &queueProgram{Queue: q}
}

// request is a callback for requests that adds to the queue while fewer than limit requests have been
// made, as colly's example of its queue does.
func (p *queueProgram) request(t *testing.T, limit int) colly.RequestCallback {
	return func(r *colly.Request) {
		p.mu.Lock()
		p.requested = append(p.requested, r.URL.RawQuery)
		n := len(p.requested)
		p.mu.Unlock()
		if n < limit {
			next, err := r.New("GET", fmt.Sprintf("http://a.test/mill?x=%d", n), nil)
			if err == nil {
				err = p.AddRequest(next)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// checkRequested fails the test unless the program has requested the seeds, and all that it added,
// once.
func (p *queueProgram) checkRequested(t *testing.T, seeds, added int) {
	t.Helper()
	var want []string
	for n := range seeds {
		want = append(want, fmt.Sprintf("n=%d", n))
	}
	for n := range added {
		want = append(want, fmt.Sprintf("x=%d", n+1))
	}
	got := slices.Sorted(slices.Values(p.requested))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("requested %q, want %q", got, want)
	}
}

// An opaqueQueue has the one method that RunQueue needs.
type opaqueQueue struct{ run func(*colly.Collector) error }

func (q *opaqueQueue) Run(c *colly.Collector) error { return q.run(c) }

// TestRunQueue is colly's example of its queue: callbacks add to the queue that runs. A callback of the
// wrapped collector itself is called once for each request.
func TestRunQueue(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T, *crawltest.Web, colly.RequestCallback) *collyfetch.Crawl{
		"callback before Wrap": func(t *testing.T, w *crawltest.Web, f colly.RequestCallback) *collyfetch.Crawl {
			c := colly.NewCollector()
			c.OnRequest(f)
			return wrapCollector(t, c, quietOptions(w))
		},
		"callback after Wrap": func(t *testing.T, w *crawltest.Web, f colly.RequestCallback) *collyfetch.Crawl {
			c := colly.NewCollector(colly.Async())
			crawl := wrapCollector(t, c, quietOptions(w))
			c.OnRequest(f)
			return crawl
		},
		"Async after Wrap": func(t *testing.T, w *crawltest.Web, f colly.RequestCallback) *collyfetch.Crawl {
			crawl := wrapCollector(t, colly.NewCollector(), quietOptions(w))
			crawl.Async = true
			crawl.OnRequest(f)
			return crawl
		},
	} {
		for _, threads := range []int{1, 2} {
			for _, isOpaque := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, threads, isOpaque), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						web, p := smallWeb(), newQueueProgram(t, threads, 5)
						crawl := wrap(t, web, p.request(t, 8))
						var q interface{ Run(*colly.Collector) error } = p.Queue
						if isOpaque {
							q = &opaqueQueue{p.Run}
						}
						must(t, crawl.RunQueue(t.Context(), q))
						p.checkRequested(t, 5, 7)
						// The queue may run again.
						must(t, p.AddURL("http://a.test/mill?n=5"))
						if !isOpaque {
							must(t, crawl.RunQueue(t.Context(), q))
							p.checkRequested(t, 6, 7)
						}
						checkPolite(t, web)
					})
				})
			}
		}
	}
}

// TestRunQueueContinues: after a limit has ended the crawl, callbacks may still add to the queue. The
// limit counts all requests of the queue together.
func TestRunQueueContinues(t *testing.T) {
	for name, next := range map[string]func(*collyfetch.Crawl, *queue.Queue) error{
		"RunQueue": func(c *collyfetch.Crawl, q *queue.Queue) error { return c.RunQueue(context.Background(), q) },
		"Run":      func(c *collyfetch.Crawl, _ *queue.Queue) error { return c.Run(context.Background()) },
		"Visit":    func(c *collyfetch.Crawl, _ *queue.Queue) error { return c.Visit("http://a.test/mill?n=0") },
		"another queue": func(c *collyfetch.Crawl, _ *queue.Queue) error {
			return c.RunQueue(context.Background(), &opaqueQueue{func(*colly.Collector) error { return nil }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, p := smallWeb(), newQueueProgram(t, 1, 2)
				o := quietOptions(web)
				o.Settings.MaxPages = 3
				crawl := wrapCollector(t, colly.NewCollector(), o)
				crawl.OnRequest(p.request(t, 8))
				for range 2 {
					if err := crawl.RunQueue(t.Context(), p.Queue); !errors.Is(err, crawler.ErrPages) {
						t.Errorf("RunQueue returned %v, want the limit of pages", err)
					}
				}
				if n := crawl.Stats().Pages; n != 6 {
					t.Errorf("%d pages after two runs of 3", n)
				}
				if err := next(crawl, p.Queue); err != nil {
					t.Errorf("%s returned %v after the last %d pages", name, err, crawl.Stats().Pages-6)
				}
				p.checkRequested(t, 2, 7)
				checkPolite(t, web)
			})
		})
	}
}

// TestRunQueueEndsAtLimit: a queue that grows without end ends at the limit of pages, also if each page
// is the only one in the frontier.
func TestRunQueueEndsAtLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newQueueProgram(t, 1, 1)
		o := quietOptions(smallWeb())
		o.Settings.MaxPages, o.StateDir = 4, t.TempDir()
		crawl, err := collyfetch.Wrap(colly.NewCollector(), o)
		must(t, err)
		crawl.OnRequest(p.request(t, 1_000_000))
		if err := crawl.RunQueue(t.Context(), p.Queue); !errors.Is(err, crawler.ErrPages) ||
			crawl.Stats().Pages != 4 {
			t.Errorf("RunQueue returned %v after %d pages, want the limit after 4", err, crawl.Stats().Pages)
		}
		must(t, crawl.Close())
		// A later process visits what was left in the queue.
		o.Settings.MaxPages = 0
		later := wrapCollector(t, colly.NewCollector(), o)
		must(t, later.Run(t.Context()))
		if n := later.Stats().Pages; n != 1 {
			t.Errorf("a later process visited %d pages, want the one that was left", n)
		}
	})
}

// A failingStorage is a queue's storage that fails from some moment on.
type failingStorage struct {
	*queue.InMemoryQueueStorage
	hasFailed atomic.Bool
}

var errStorage = errors.New("the storage of the queue has failed")

// QueueSize implements queue.Storage.
func (s *failingStorage) QueueSize() (int, error) {
	if s.hasFailed.Load() {
		return 0, errStorage
	}
	return s.InMemoryQueueStorage.QueueSize()
}

// TestRunQueueFails: a queue that ends while the crawl runs ends the run with its error, and logs that
// AddRequest blocks. (The queue leaves a goroutine behind, so the test cannot use synctest.)
func TestRunQueueFails(t *testing.T) {
	var log bytes.Buffer
	o := quietOptions(smallWebWithDelay(time.Millisecond))
	o.Log, o.Policy.Delay = slog.New(slog.NewTextHandler(&log, nil)), time.Millisecond
	crawl := wrapCollector(t, colly.NewCollector(), o)
	s := &failingStorage{InMemoryQueueStorage: &queue.InMemoryQueueStorage{MaxSize: 100}}
	q, err := queue.New(1, s)
	must(t, err)
	p := queueProgram{Queue: q}
	must(t, p.AddURL("http://a.test/mill"))
	crawl.OnRequest(func(r *colly.Request) {
		s.hasFailed.Store(true)
		p.request(t, 2)(r)
	})
	if err := crawl.RunQueue(t.Context(), q); !errors.Is(err, errStorage) {
		t.Errorf("RunQueue returned %v, want the error of the storage", err)
	}
	if !strings.Contains(log.String(), "cancel the context of RunQueue") {
		t.Errorf("logged %q", &log)
	}
}

// TestRunQueueSeeds: what a queue has at its start are seeds, for which the limits of URL traps do not
// hold.
func TestRunQueueSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, o := newQueueProgram(t, 2, 20), quietOptions(smallWeb())
		o.FrontierConfig.Scope = frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope, MaxURLsPerPattern: 3},
			nil)
		crawl := wrapCollector(t, colly.NewCollector(), o)
		must(t, crawl.RunQueue(t.Context(), p.Queue))
		if n := crawl.Stats().Pages; n != 20 {
			t.Errorf("%d of 20 URLs were visited", n)
		}
	})
}

// TestRunQueueLinks: the URLs that callbacks add to a queue are links, for which the limits of URL traps
// hold, also if the size of the queue is unknown or a seed of the queue was refused.
func TestRunQueueLinks(t *testing.T) {
	for name, mustHide := range map[string]bool{"known size": false, "unknown size": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, o := newQueueProgram(t, 2, 1), quietOptions(smallWeb())
				for range 20 {
					must(t, p.AddURL("http://refused.test/"))
				}
				o.FrontierConfig.Scope = frontier.NewScope(
					frontier.ScopeConfig{Mode: frontier.AnyScope, MaxDepth: 100, MaxURLsPerPattern: 3}, nil)
				crawl := wrapCollector(t, colly.NewCollector(colly.AllowedDomains("a.test")), o)
				crawl.OnResponse(func(r *colly.Response) {
					for n := range 20 {
						next, err := r.Request.New("GET", fmt.Sprintf("http://a.test/mill?x=%d", n), nil)
						must(t, err)
						must(t, p.AddRequest(next))
					}
				})
				var q interface{ Run(*colly.Collector) error } = p.Queue
				if mustHide {
					q = &opaqueQueue{p.Run}
				}
				must(t, crawl.RunQueue(t.Context(), q))
				if n := crawl.Stats().Pages; n < 2 || n > 10 { // 4, and some that two threads add at a time
					t.Errorf("%d pages were visited, want the seed and a few of 20 links", n)
				}
			})
		})
	}
}

// TestQueueRun: Queue.Run on a wrapped collector is refused, which is logged. A run after it does not
// wait for callbacks that add to the queue. If the program has made the collector Async, the requests
// are recognised less certainly: they are queued, which is logged, too.
func TestQueueRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p, o := newQueueProgram(t, 1, 3), quietOptions(smallWeb())
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		crawl := wrapCollector(t, colly.NewCollector(), o)
		crawl.Async = true
		must(t, p.Run(crawl.Collector.Collector))
		crawl.Wait()
		if want := "use Crawl.RunQueue"; crawl.Stats().Pages != 3 || strings.Count(log.String(), want) != 1 {
			t.Errorf("Async: %d pages were visited, and logged %q, want 3 and one line with %q", crawl.Stats().Pages,
				&log, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p, o := newQueueProgram(t, 1, 3), quietOptions(smallWeb())
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		crawl := wrapCollector(t, colly.NewCollector(), o)
		crawl.OnRequest(p.request(t, 8))
		refused := 0
		crawl.OnError(func(*colly.Response, error) { refused++ })
		must(t, p.Run(crawl.Collector.Collector))
		must(t, crawl.Run(t.Context()))
		if want := "use Crawl.RunQueue"; refused != 3 || strings.Count(log.String(), want) != 1 {
			t.Errorf("%d requests were refused and logged as %q, want 3 and one line with %q", refused, &log, want)
		}
	})
}
