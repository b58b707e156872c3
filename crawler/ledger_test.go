package crawler_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A waitingLedger is a ledger whose disk is full for a while.
type waitingLedger struct {
	*ledger.Ledger
	blockedUntil        time.Time
	answersBlockedUntil time.Time // until then it has no space for responses
	err                 error     // returned instead of waiting; nil: it waits
}

func (n *waitingLedger) waitUntil(ctx context.Context, until time.Time) error {
	if n.err != nil {
		return n.err
	}
	select {
	case <-time.After(time.Until(until)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *waitingLedger) Append(ctx context.Context, r *ledger.Record) (int64, error) {
	until := n.blockedUntil
	if r.Response != nil {
		until = n.answersBlockedUntil
	}
	if err := n.waitUntil(ctx, until); err != nil {
		return 0, err
	}
	return n.Ledger.Append(r)
}

func (n *waitingLedger) StoreRobotsFile(_ context.Context, hash string, body []byte) error {
	return n.Ledger.StoreRobotsFile(hash, body)
}

// newWaitingLedger returns a ledger in a directory, for a crawl of newCrawl.
func newWaitingLedger(t *testing.T, dir string) *waitingLedger {
	t.Helper()
	l, err := ledger.Open(ledger.Config{Dir: dir,
		RunStart: ledger.RunStart{Software: "test", UserAgent: "testbot/1.0", ProductToken: "testbot",
			RobotsDialect: "google", RobotsExtensions: true, DelayMS: 1000, RecordsRefusals: true}})
	if err != nil {
		t.Fatal(err)
	}
	return &waitingLedger{Ledger: l}
}

// verifyLedger verifies a ledger, which must be correct, and returns its records.
func verifyLedger(t *testing.T, dir string) (records []*ledger.Record, report *ledger.VerifyReport) {
	t.Helper()
	report, err := ledger.Verify(dir, ledger.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Error(f)
	}
	for r, err := range ledger.Records(dir) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records, report
}

// mixedSite returns a site with one URL for each cause of a request.
func mixedSite() crawltest.Site {
	moved := crawltest.Redirect(http.StatusFound, "/rules.txt")
	broken := crawltest.Status(http.StatusServiceUnavailable)
	return crawltest.Site{Host: "a.test",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: moved, CrawlDelay: 2 * time.Second,
			IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/closed") }}),
		Pages: map[string]crawltest.PageFunc{
			"/rules.txt": crawltest.StaticPage(crawltest.Text("User-agent: *\nCrawl-delay: 2\nAllow: " +
				"/open\nDisallow: /closed\nSitemap: http://a.test/map.txt\n")),
			"/map.txt": crawltest.StaticPage(crawltest.ResponseOfType("text/plain", "http://a.test/listed\n")),
			"/": crawltest.StaticPage(
				crawltest.HTML(
					`<a href=/open/1>1</a> <a href=/closed/1>2</a> <a href=/moves>3</a> <a href=/breaks>4</a> <a href=http://b.test/>5</a>`)),
			"/open/1": crawltest.StaticPage(crawltest.HTML("open")),
			"/listed": crawltest.StaticPage(crawltest.HTML("listed")),
			"/moves":  crawltest.StaticPage(crawltest.Redirect(http.StatusMovedPermanently, "/moved")),
			"/moved":  crawltest.StaticPage(crawltest.HTML("moved")),
			"/breaks": func(r crawltest.PageRequest) crawltest.Response {
				switch r.NthForURL {
				case 1:
					return broken
				case 2:
					return crawltest.Response{Fault: crawltest.Reset}
				}
				return crawltest.HTML("at last")
			},
		},
		OtherMethodPages: map[string]crawltest.PageFunc{"/box": crawltest.StaticPage(crawltest.HTML("thanks"))},
	}
}

// TestLedger: the ledger has a record of every request that the servers saw, and of no other; every
// verdict can be derived again, and every rest measured.
func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(mixedSite(), crawltest.Site{Host: "b.test", Fallback: pageWithLinks()})
		dir := t.TempDir()
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		post := postEntry(t)
		if _, err := c.Frontier.Discover(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		testLedger := newWaitingLedger(t, dir)
		c.Ledger, c.Settings.RecordRefusalsInLedger = testLedger, true
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := testLedger.Close(); err != nil {
			t.Fatal(err)
		}
		records, report := verifyLedger(t, dir)
		checkRequests(t, web.Log(), records)
		if report.UnansweredRequests != 0 || report.Responses != report.Requests || report.Refusals != 1 {
			t.Errorf("report %+v", *report)
		}
		checkEntries(t, records)
	})
}

// checkRequests compares what the servers saw with the records, in order.
func checkRequests(t *testing.T, log []crawltest.Exchange, records []*ledger.Record) {
	t.Helper()
	var saw, wrote []string
	for _, x := range log {
		saw = append(saw, x.Method+" "+x.URL+" "+x.Start.UTC().Format(time.RFC3339Nano))
	}
	for _, r := range records {
		if q := r.Request; q != nil {
			method := q.Method
			if method == "" {
				method = http.MethodGet
			}
			wrote = append(wrote, method+" "+q.URL+" "+r.Time.Format(time.RFC3339Nano))
		}
	}
	slices.Sort(saw)
	slices.Sort(wrote)
	if !slices.Equal(saw, wrote) {
		t.Errorf("the servers saw\n%s\nand written down are\n%s", strings.Join(saw, "\n"), strings.Join(wrote, "\n"))
	}
}

// checkEntries checks some records of TestLedger in detail.
func checkEntries(t *testing.T, records []*ledger.Record) {
	t.Helper()
	entry := map[string]*ledger.Request{}
	for _, r := range records {
		if r.Request != nil {
			entry[r.Request.URL] = r.Request
		}
	}
	if q := entry["http://a.test/rules.txt"]; q == nil || q.Kind != ledger.KindRobotsTXT ||
		q.Referrer != "http://a.test/robots.txt" || q.RobotsVerdict != nil {
		t.Errorf("the redirect of a robots.txt is recorded as %+v", q)
	}
	if q := entry["http://a.test/map.txt"]; q == nil || q.Kind != ledger.KindSitemap || q.RobotsVerdict == nil {
		t.Errorf("a sitemap is written down as %+v", q)
	}
	if q := entry["http://a.test/moved"]; q == nil || q.URLSource != "redirect" || q.Referrer != "http://a.test/moves" {
		t.Errorf("the target of a redirect is written down as %+v", q)
	}
	if q := entry["http://a.test/box"]; q == nil || q.Method != http.MethodPost {
		t.Errorf("a POST is written down as %+v", q)
	}
	q := entry["http://a.test/open/1"]
	if q == nil || q.RobotsVerdict == nil || q.RobotsVerdict.Rule != "allow: /open" || q.RobotsVerdict.RuleLine != 3 ||
		q.RequiredDelayMS != 2000 || q.ObservedDelayMS < 2000 || q.Slots != 1 {
		t.Errorf("a page is written down as %+v, %+v", q, q.RobotsVerdict)
	}
}

// TestLedgerOnFullDisk: a request that cannot be recorded for now is not sent: the crawl pauses.
func TestLedgerOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		dir, writableAt := t.TempDir(), time.Now().Add(time.Hour)
		testLedger := newWaitingLedger(t, dir)
		testLedger.blockedUntil = writableAt
		c.Ledger = testLedger
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if log := web.Log(); len(log) != 2 || log[0].Start.Before(writableAt) {
			t.Errorf("requests %v, want two, after %v", log, writableAt)
		}
		if err := testLedger.Close(); err != nil {
			t.Fatal(err)
		}
		records, _ := verifyLedger(t, dir)
		checkRequests(t, web.Log(), records)
	})
}

// TestLedgerOfUsage: the record of a response names the objection to the use of the page's content.
func TestLedgerOfUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(usageSite())
		c, k := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/"), &visitRecorder{}
		dir := t.TempDir()
		testLedger := newWaitingLedger(t, dir)
		c.Ledger, c.PageRecorder = testLedger, k
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := testLedger.Close(); err != nil {
			t.Fatal(err)
		}
		records, _ := verifyLedger(t, dir)
		want, got, urls := map[string]string{}, map[string]string{}, map[int64]string{}
		for path, v := range k.visits {
			if v.ContentWithheld() {
				want["http://a.test"+path] = v.ContentUsageAssessment().PurposeConflict.Error()
			}
		}
		for _, r := range records {
			switch {
			case r.Request != nil:
				urls[r.Number] = r.Request.URL
			case r.Response != nil && r.Response.WithheldReason != "":
				got[urls[r.Response.RequestNumber]] = r.Response.WithheldReason
			}
		}
		if len(want) != 8 || !maps.Equal(want, got) {
			t.Errorf("withheld are %v, and written down %v", want, got)
		}
	})
}

// TestAnswerOnFullDisk: while the crawl is being halted, a response without disk space is recorded
// if there is space soon. Otherwise the ledger has no end of the run, because an end claims that
// every request has its response: the run looks like one that was killed.
func TestAnswerOnFullDisk(t *testing.T) {
	for blockedFor, interrupted := range map[time.Duration]int64{3 * time.Second: 0, time.Hour: 1} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
			c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
			dir := t.TempDir()
			testLedger := newWaitingLedger(t, dir)
			testLedger.answersBlockedUntil = time.Now().Add(blockedFor)
			c.Ledger, c.Settings.GracePeriod = testLedger, time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := c.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour)
			if err := testLedger.Close(); err != nil {
				t.Fatal(err)
			}
			if err := newWaitingLedger(t, dir).Close(); err != nil {
				t.Fatal(err)
			}
			records, report := verifyLedger(t, dir)
			checkRequests(t, web.Log(), records)
			if report.Requests != 1 || report.UnansweredRequests != interrupted {
				t.Errorf("room after %v: %+v, want %d requests interrupted", blockedFor, *report, interrupted)
			}
		})
	}
}

// TestBrokenLedgerStopsTheCrawl: a ledger that fails for good stops the crawl, and nothing is sent,
// not even a POST, which is sent when the crawl continues with a working ledger.
func TestBrokenLedgerStopsTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		web := newPostSite()
		c := newCrawl(t, web, store)
		if _, err := c.Frontier.Discover(t.Context(), postEntry(t)); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil { // it learns the robots.txt
			t.Fatal(err)
		}
		before, again := len(web.Log()), postEntry(t)
		again.Request = &storage.NonGETRequest{Method: http.MethodPost, Body: []byte("another")}
		if _, err := c.Frontier.Discover(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		c.Ledger = &waitingLedger{err: broken}
		if err := c.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the ledger", err)
		}
		if n := len(web.Log()); n != before {
			t.Errorf("%d requests were sent that were not written down", n-before)
		}
		c.Ledger = nil
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(web.Log()); n != before+1 {
			t.Errorf("%d requests, want the one not sent before", n-before)
		}
	})
}

var _ crawler.Ledger = (*waitingLedger)(nil)
