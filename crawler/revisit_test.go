package crawler_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

const day = 24 * time.Hour

var (
	dailyRevisits    = frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: day}
	adaptiveRevisits = frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit,
		MinInterval: time.Hour, MaxInterval: 30 * day}
)

// A visitLog is a Recorder that keeps "status source path" of each visit.
type visitLog struct {
	mu    sync.Mutex
	lines []string
}

func (j *visitLog) Record(_ context.Context, v *crawler.Visit) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, path, _ := strings.Cut(strings.TrimPrefix(v.URL().String(), "http://"), "/")
	j.lines = append(j.lines, fmt.Sprintf("%d %v /%s", v.Status(), v.Lease.Source, path))
	return nil
}

// newRevisitCrawl returns a crawl that revisits pages. If wait is set, it waits for revisits
// instead of ending.
func newRevisitCrawl(t *testing.T, web *crawltest.Web, store storage.Store, plan frontier.RevisitPolicy, wait bool,
	seeds ...string) (*crawler.Crawler, *visitLog) {
	t.Helper()
	c := newCrawl(t, web, store, seeds...)
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: wait})
	c.Settings.Revisit = plan
	j := &visitLog{}
	c.PageRecorder = j
	return c, j
}

// runFor runs a crawl for some time.
func runFor(t *testing.T, c *crawler.Crawler, d time.Duration) {
	t.Helper()
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, enough)
	defer cancel()
	if err := c.Run(ctx); !errors.Is(err, enough) {
		t.Fatalf("Run returned %v", err)
	}
}

// wantLines fails the test unless the lines are as wanted.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("visits:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestConditionalRevisits: a page that changes after 60 hours is requested conditionally each day,
// whichever validators it has, and handled when it has changed. Its links stay alive all the time.
func TestConditionalRevisits(t *testing.T) {
	unchangedStatus := func(etag, date bool) int {
		if etag || date {
			return http.StatusNotModified
		}
		return http.StatusOK
	}
	for _, tt := range []struct{ etag, date bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			page := crawltest.ChangingPage{ChangeTimes: []time.Time{begin.Add(-time.Hour), begin.Add(60 * time.Hour)},
				SendETag: tt.etag, SendLastModified: tt.date,
				ResponseAfterChanges: func(n int) crawltest.Response {
					return crawltest.HTML(fmt.Sprintf("<a href=/child>version %d</a>", n))
				}}
			web := crawltest.New(crawltest.Site{Host: "a.test",
				Pages: map[string]crawltest.PageFunc{"/": page.Respond, "/child": pageWithLinks()}})
			c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
			read := map[string]int{}
			c.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
				read[fmt.Sprint(v.Status(), " ", v.URL())]++
				return c.LinksToFollow(ctx, v)
			}
			runFor(t, c, 4*day-time.Hour)
			same := fmt.Sprint(unchangedStatus(tt.etag, tt.date))
			wantLines(t, j.lines, "200 seed /", "200 link /child",
				same+" revisit /", "200 revisit /child", same+" revisit /", "200 revisit /child",
				"200 revisit /", "200 revisit /child")
			reads := 4
			if tt.etag || tt.date {
				reads = 2 // a 304 is not handled
			}
			if n := read["200 http://a.test/"]; n != reads || len(read) != 2 {
				t.Errorf("with ETag %v, date %v: the handler read %v, want the page %d times",
					tt.etag, tt.date, read, reads)
			}
			if s := c.Stats(); s.Revisits != 6 || s.Unchanged != 5 {
				t.Errorf("%d revisits, %d unchanged; want 6 and 5", s.Revisits, s.Unchanged)
			}
			if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
				AllowRevisits: true}); !r.OK() {
				t.Errorf("the judge says:\n%v", r)
			}
		})
	}
}

// TestUnsolicited304: an answer of 304 to the first visit of a page does no harm.
func TestUnsolicited304(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL == 3 {
					return crawltest.HTML("<a href=/child>x</a>")
				}
				return crawltest.Response{Status: http.StatusNotModified}
			},
			"/child": crawltest.StaticPage(crawltest.HTML("x"))}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		runFor(t, c, 3*day-time.Hour)
		wantLines(t, j.lines, "304 seed /", "304 revisit /", "200 revisit /", "200 link /child")
	})
}

// TestValidatorsThatCannotBeSent: validators that cannot be sent do not prevent a revisit.
func TestValidatorsThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := crawltest.HTML("x")
		long.Header.Set("ETag", `"`+strings.Repeat("x", storage.MaxValidatorBytes)+`"`)
		odd := crawltest.HTML("x")
		odd.Header.Set("ETag", "\"a\x01b\"")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/long": crawltest.StaticPage(long), "/odd": crawltest.StaticPage(odd)}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true,
			"http://a.test/long", "http://a.test/odd")
		runFor(t, c, 2*day-time.Hour)
		wantLines(t, j.lines, "200 seed /long", "200 seed /odd", "200 revisit /long", "200 revisit /odd")
	})
}

// TestMissingPages: a missing page is requested less and less often, and given up the third time,
// unless it comes back. A page that redirects waits for its revisit.
func TestMissingPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": pageWithLinks("/gone", "/back", "/moved"), "/there": pageWithLinks(),
			"/moved": crawltest.StaticPage(crawltest.Redirect(301, "/there")),
			"/back": func(r crawltest.PageRequest) crawltest.Response {
				if age := r.ReceivedAt.Sub(begin); age > day/2 && age < 2*day+day/2 {
					return crawltest.Status(http.StatusGone)
				}
				return crawltest.HTML("here")
			}}})
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		runFor(t, c, 20*day)
		days := map[string][]int{}
		for _, x := range web.Log() {
			days[x.URL] = append(days[x.URL], int(x.Start.Sub(begin)/day))
		}
		for url, want := range map[string][]int{
			"http://a.test/gone": {0, 2, 6}, "http://a.test/back": {0, 1, 3, 4, 5},
			"http://a.test/moved": {0, 1, 2, 3, 4}, "http://a.test/there": {0, 1, 2, 3, 4},
		} {
			got := days[url]
			if len(want) > 3 {
				got = got[:len(want)]
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s was requested on days %v, want %v", url, days[url], want)
			}
		}
	})
}

// TestFailingRevisits: if the revisit of a known page fails, it is retried, then waits for its next
// revisit, and is still requested conditionally when the server works again. A page that always
// failed is given up.
func TestFailingRevisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		page := crawltest.ChangingPage{ResponseAfterChanges: func(int) crawltest.Response {
			return crawltest.HTML("x")
		}, SendETag: true}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/broken": crawltest.StaticPage(crawltest.Status(500)),
			"/": func(r crawltest.PageRequest) crawltest.Response {
				if d := int(r.ReceivedAt.Sub(begin) / day); d == 1 {
					return crawltest.Status(500)
				}
				return page.Respond(r)
			}}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/", "http://a.test/broken")
		runFor(t, c, 3*day-time.Hour)
		wantLines(t, j.lines, "200 seed /", "500 seed /broken", "500 seed /broken", "500 seed /broken",
			"500 revisit /", "500 revisit /", "500 revisit /", "304 revisit /")
		if s := c.Stats(); s.Failures[crawler.Transient] != 6 || s.GivenUp != 2 {
			t.Errorf("%+v: want 6 passing failures, and 2 pages given up", s)
		}
	})
}

// TestForegroundEnds: a crawl that does not wait ends when all pages await a revisit. Its next run
// visits those that are due by then.
func TestForegroundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1", "/2")})
		store := newMemoryStore()
		run := func() (*frontier.OnlyRevisitsLeftError, []string) {
			c, j := newRevisitCrawl(t, web, store, dailyRevisits, false, "http://a.test/")
			err := c.Run(t.Context())
			var awaiting *frontier.OnlyRevisitsLeftError
			if !errors.As(err, &awaiting) || !errors.Is(err, frontier.ErrOnlyRevisitsLeft) {
				t.Fatalf("Run returned %v, want a RestingError", err)
			}
			return awaiting, j.lines
		}
		first, lines := run()
		wantLines(t, lines, "200 seed /", "200 link /1", "200 link /2")
		if want := begin.Add(day + time.Second); !first.FirstRevisit.Equal(want) {
			t.Errorf("the first revisit is due at %v, want %v", first.FirstRevisit, want)
		}
		if _, lines = run(); len(lines) > 0 {
			t.Errorf("nothing is due, and %v was visited", lines)
		}
		time.Sleep(time.Until(first.FirstRevisit))
		_, lines = run()
		// the others become due during the run
		wantLines(t, lines, "200 revisit /", "200 revisit /1", "200 revisit /2")
	})
}

// TestModeNoneEndsRevisits: when revisits are switched off, pages that await one are visited a last
// time.
func TestModeNoneEndsRevisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		store := newMemoryStore()
		c, _ := newRevisitCrawl(t, web, store, dailyRevisits, false, "http://a.test/")
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlyRevisitsLeft) {
			t.Fatal(err)
		}
		time.Sleep(2 * day)
		c, j := newRevisitCrawl(t, web, store, frontier.RevisitPolicy{}, true)
		if err := c.Run(t.Context()); err != nil {
			t.Errorf("Run returned %v", err)
		}
		wantLines(t, j.lines, "200 revisit /")
	})
}

// TestRulesFlipForPagesAwaitingRevisit: a page that is disallowed when its revisit is due is parked
// with its history, and requested conditionally when it is allowed again, even if every URL of the
// origin was disallowed for some days.
func TestRulesFlipForPagesAwaitingRevisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		isDisallowed := func(at time.Time) bool { d := at.Sub(begin); return d > day/2 && d < 5*day+day/2 }
		page := crawltest.ChangingPage{ResponseAfterChanges: func(int) crawltest.Response {
			return crawltest.HTML("<a href=/1>x</a><a href=/2>x</a>")
		}, SendETag: true}
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: page.Respond,
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if isDisallowed(at) {
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /\n"),
						IsDisallowed: func(string) bool { return true }}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow:\n")}
			}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		runFor(t, c, 3*day)
		wantLines(t, j.lines, "200 seed /", "200 link /1", "200 link /2")
		counts, err := countsOf(c.Frontier.Store())
		if err != nil || counts.ParkedURLs != 3 {
			t.Errorf("%+v, %v: want the 3 pages parked", counts, err)
		}
		runFor(t, c, 5*day)
		if len(j.lines) < 6 {
			t.Fatalf("visits %v: want the pages to be visited again", j.lines)
		}
		for _, line := range j.lines[3:] {
			if !strings.HasPrefix(line, "304 revisit /") {
				t.Errorf("%q after the rules were lifted, want 304: what is known of the page was kept", line)
			}
		}
		if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
			AllowRevisits: true}); !r.OK() {
			t.Errorf("the judge says:\n%v", r)
		}
	})
}

// TestValidatorsAreOfOneURL: the history of a page is not used for the URL that it was found as,
// nor for the one that new rules clean it to.
func TestValidatorsAreOfOneURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		unchanged := crawltest.HTML("x")
		unchanged.Header.Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
		root := unchanged // its links are not found again
		root.Body = "<a href=/x?sid=1>x</a><a href=/y?sid=1>y</a>"
		later := func(day0, after crawltest.Response) crawltest.PageFunc {
			return func(r crawltest.PageRequest) crawltest.Response {
				if r.ReceivedAt.Sub(begin) < day/2 {
					return day0
				}
				return after
			}
		}
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < day/2 {
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow:\nClean-param: " +
						"sid /x\n")}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow:\nClean-param: sid\n")}
			},
			Pages: map[string]crawltest.PageFunc{
				"/":        crawltest.StaticPage(root),
				"/x":       later(unchanged, crawltest.Status(404)),
				"/x?sid=1": crawltest.StaticPage(unchanged),
				"/y":       crawltest.StaticPage(unchanged),
				"/y?sid=1": crawltest.StaticPage(unchanged),
			}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		seed, err := decorum.ParseURL("http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		c.Frontier = frontier.New(newMemoryStore(),
			frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true, CleanURL: c.Gate.CleanURL})
		if _, err := c.Frontier.Discover(t.Context(), storage.Entry{URL: seed}); err != nil {
			t.Fatal(err)
		}
		runFor(t, c, 2*day-time.Hour)
		slices.Sort(j.lines)
		wantLines(t, j.lines, "200 link /x", "200 link /y", "200 link /y?sid=1", "200 revisit /x?sid=1", "200 seed /",
			"304 revisit /", "404 revisit /x")
	})
}

// A crashingStore is a Store whose first Unpark is cut off by a crash.
type crashingStore struct {
	storage.Store
	crashes int
}

var errCrash = errors.New("power cut")

func (h *crashingStore) UnparkMatchingURLs(ctx context.Context, o decorum.Origin,
	shouldUnpark func(storage.Entry) bool) (int, error) {
	if h.crashes--; h.crashes < 0 {
		return h.Store.UnparkMatchingURLs(ctx, o, shouldUnpark)
	}
	left := 1
	n, err := h.Store.UnparkMatchingURLs(ctx, o, func(e storage.Entry) bool {
		left--
		return left >= 0 && shouldUnpark(e)
	})
	return n, errors.Join(err, errCrash)
}

// TestUnparkIsRepeated: a crash after some of the parked URLs are queued again leaves none of them
// parked.
func TestUnparkIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/p/1", "/p/2", "/p/3"),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < day {
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /p/\n"),
						IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/p/") }}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow:\n")}
			}})
		store := &crashingStore{Store: newMemoryStore()}
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * day)
		store.crashes = 1
		if err := newCrawl(t, web, store, "http://a.test/new").Run(t.Context()); !errors.Is(err, errCrash) {
			t.Fatalf("the second run ended with %v", err)
		}
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		for _, path := range []string{"/new", "/p/1", "/p/2", "/p/3"} {
			if times["http://a.test"+path] != 1 {
				t.Errorf("%s was visited %d times, want once", path, times["http://a.test"+path])
			}
		}
		checkPoliteness(t, web, time.Second)
	})
}

// changeTimes returns random times of changes within 40 days, a mean interval apart.
func changeTimes(r *rand.Rand, mean time.Duration, from time.Time) (at []time.Time) {
	for t := from; mean > 0; {
		t = t.Add(time.Duration(r.ExpFloat64() * float64(mean)))
		if t.Sub(from) > 40*day {
			break
		}
		at = append(at, t)
	}
	return at
}

// TestAdaptiveRevisits crawls 200 pages for 40 days: 2 of them change hourly, 8 daily, 20 weekly,
// at random times, and 170 never. The interval of each page adapts: fewer copies are stale, and
// changes are found far sooner, than in a crawl with as many visits at a fixed interval.
func TestAdaptiveRevisits(t *testing.T) {
	kinds := []struct {
		name           string
		pages          int
		mean           time.Duration
		minGap, maxGap time.Duration // between visits in the second half
	}{
		{"hourly", 2, time.Hour, time.Hour, 12 * time.Hour},
		{"daily", 8, day, 14 * time.Hour, 40 * time.Hour},
		{"weekly", 20, 7 * day, 2 * day, 6 * day},
		{"never", 170, 0, 13 * day, 30 * day},
	}
	run := func(plan frontier.RevisitPolicy) (f freshness, visits int, between map[string]time.Duration) {
		between = map[string]time.Duration{}
		synctest.Test(t, func(t *testing.T) {
			begin, rng := time.Now(), rand.New(rand.NewPCG(1, 2))
			pages, changes := map[string]crawltest.PageFunc{}, map[string][]time.Time{}
			var seeds []string
			for _, k := range kinds {
				for i := range k.pages {
					path := fmt.Sprintf("/%s/%d", k.name, i)
					p := crawltest.ChangingPage{ChangeTimes: changeTimes(rng, k.mean, begin), SendETag: true,
						ResponseAfterChanges: func(n int) crawltest.Response {
							return crawltest.HTML(fmt.Sprint("version ", n))
						}}
					pages[path], changes["http://a.test"+path] = p.Respond, p.ChangeTimes
					seeds = append(seeds, "http://a.test"+path)
				}
			}
			web := crawltest.New(crawltest.Site{Host: "a.test", Pages: pages})
			c, _ := newRevisitCrawl(t, web, newMemoryStore(), plan, true, seeds...)
			runFor(t, c, 40*day)
			seen := map[string][]time.Time{}
			for _, x := range web.Log() {
				if changes, page := changes[x.URL]; page || changes != nil {
					seen[x.URL] = append(seen[x.URL], x.Start)
					visits++
				}
			}
			for _, url := range seeds {
				f.add(changes[url], seen[url], begin.Add(40*day))
			}
			for _, k := range kinds {
				between[k.name] = meanGap(seen, "http://a.test/"+k.name, begin.Add(20*day))
			}
			if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
				AllowRevisits: true}); !r.OK() {
				t.Errorf("the judge says:\n%v", r)
			}
		})
		return f, visits, between
	}
	adaptiveResult, visits, between := run(adaptiveRevisits)
	for _, k := range kinds {
		if got := between[k.name]; got < k.minGap || got > k.maxGap {
			t.Errorf("%s: %v between visits, want %v to %v", k.name, got, k.minGap, k.maxGap)
		}
		t.Logf("%s: %v between visits", k.name, between[k.name].Round(time.Minute))
	}
	every := 40 * day * 200 / time.Duration(visits)
	fixed, visitsFixed, _ := run(frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: every})
	t.Logf("adaptive: %d visits, %v; every %v: %d visits, %v", visits, adaptiveResult,
		every.Round(time.Minute), visitsFixed, fixed)
	if visitsFixed < visits*9/10 || adaptiveResult.staleShare() > 0.8*fixed.staleShare() ||
		adaptiveResult.meanWait() > fixed.meanWait()/4 {
		t.Errorf("with as many visits, adaptive: %v; fixed: %v", adaptiveResult, fixed)
	}
}

// freshness measures the copies of a crawl.
type freshness struct {
	staleTime, totalTime time.Duration // of stale copies; of all copies
	waitTime             time.Duration // from changes to the visits that found them
	changes              int
}

// add adds a page that was changed and visited at these times.
func (f *freshness) add(changes, visits []time.Time, end time.Time) {
	f.totalTime += end.Sub(visits[0])
	for i, visit := range visits {
		next := end
		if i+1 < len(visits) {
			next = visits[i+1]
		}
		var old time.Duration
		for _, at := range changes {
			if at.After(visit) && at.Before(next) {
				f.changes++
				f.waitTime += next.Sub(at)
				old = max(old, next.Sub(at))
			}
		}
		f.staleTime += old
	}
}

func (f freshness) staleShare() float64     { return float64(f.staleTime) / float64(f.totalTime) }
func (f freshness) meanWait() time.Duration { return f.waitTime / time.Duration(f.changes) }

func (f freshness) String() string {
	return fmt.Sprintf("%.2f%% of copies stale, a change waits %v to be seen", 100*f.staleShare(),
		f.meanWait().Round(time.Minute))
}

// meanGap returns the mean time between the visits of each page with the prefix that ended after a
// given time.
func meanGap(seen map[string][]time.Time, prefix string, after time.Time) time.Duration {
	var sum time.Duration
	var n int
	for url, visits := range seen {
		for i := 1; i < len(visits); i++ {
			if strings.HasPrefix(url, prefix) && visits[i].After(after) {
				sum += visits[i].Sub(visits[i-1])
				n++
			}
		}
	}
	return sum / time.Duration(max(n, 1))
}

// TestBodyIsHashedOnce: the first call computes the hash, and later changes of the body do not
// change it.
func TestBodyIsHashedOnce(t *testing.T) {
	const body = "always the same"
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML(body))}})
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		visits := 0
		c.Handler = func(_ context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
			visits++
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if v.BodySHA256() != sha256.Sum256([]byte(body)) {
						t.Error("not the hash of the body")
					}
				})
			}
			all.Wait()
			v.Response.Body = fmt.Appendf(nil, "edited %d times", visits)
			return nil, nil
		}
		runFor(t, c, 4*day-time.Hour)
		if s := c.Stats(); visits != 4 || s.Revisits != 3 || s.Unchanged != 3 {
			t.Errorf("%d visits, %d of them again, %d unchanged", visits, s.Revisits, s.Unchanged)
		}
	})
	var byHand crawler.Visit
	if byHand.BodySHA256() != sha256.Sum256(nil) {
		t.Error("no answer has another hash than nothing")
	}
	if byHand.Response = new(decorum.Response{Body: []byte(body)}); byHand.BodySHA256() != sha256.Sum256([]byte(body)) {
		t.Error("not the hash of the body")
	}
}
