package supervisor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
)

// startTownDaemon crawls the town as a project of a daemon until no visit is left to make. The broken
// robots.txt keeps the project from being done.
func startTownDaemon(t *testing.T) *daemonFixture {
	t.Helper()
	f := newDaemonFixture(t, daemontest.TownSites()...)
	f.start(true)
	f.PutProjectFile("town", "agent: {product: decorum, contact: 'mailto:bot@example.com'}\n"+
		"seeds: ['http://shop.example/', 'http://slow.example/', 'http://broken.example/']\n"+
		"politeness: {delay: 20ms, adaptive: 0}\nfetch: {allow_private: true, connect_to: ['::"+f.Addr+"']}\n")
	f.ReloadAndFind("town")
	daemontest.WaitUntil(t, "the town is crawled", func() bool {
		page, err := f.Hosts(t.Context(), "town", api.HostQuery{})
		return err == nil && page.HostsByState["done"] == 1 && page.HostsByState["held"] == 1 &&
			page.HostsByState["set aside"] == 1
	})
	return f
}

// problemStatus returns the HTTP status of an error of the API.
func problemStatus(err error) int {
	var p *api.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// The notes about a host are kept at its http origin. That origin is no origin of a site on another port.
func TestSiteOnAnotherPortHasOneOrigin(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, crawltest.Site{Host: "port.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nCrawl-delay: 0.02\n"), CrawlDelay: 20 * time.Millisecond}),
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("home"))}})
	f.start(true)
	f.PutProjectFile("port", f.ProjectYAML("http://port.example:8080/", daemontest.NoDelayYAML))
	f.ReloadAndFind("port")
	f.WaitForState("port", api.StateDone)
	d, err := f.HostDetail(t.Context(), "port", "port.example")
	if err != nil {
		t.Fatal(err)
	}
	const origin = "http://port.example:8080"
	if d.CrawlDelay == 0 {
		t.Fatal("the host has no Crawl-delay, so that no note about it is kept")
	}
	if !slices.Equal(d.Origins, []string{origin}) || len(d.RobotsFiles) != 1 || d.RobotsFiles[0].Origin != origin ||
		d.RobotsOutcome != "rules" {
		t.Errorf("origins %q, robots.txt %s of %+v; want %s with rules", d.Origins, d.RobotsOutcome, d.RobotsFiles,
			origin)
	}
}

// A daemon answers queries about a running, a paused and a stopped project as the commands do.
func TestServeAnswers(t *testing.T) {
	t.Parallel()
	f := startTownDaemon(t)
	ctx := t.Context()
	town := f.inspector("town")
	if err := f.SetBrake(ctx, api.Brake{Host: "example", WithSubdomains: true, Stop: true,
		Reason: "asked to", By: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, action := range []api.ProjectAction{api.ActionStart, api.ActionPause, api.ActionStop} {
		f.DoActions("town", action)
		page, err := f.Hosts(ctx, "town", api.HostQuery{Sort: "host", Limit: 2, Offset: 1})
		if err != nil || page.Total != 3 || len(page.Hosts) != 2 || page.Hosts[0].Host != "shop.example" {
			t.Fatalf("%s: %+v, %v", action, page, err)
		}
		shop, slow := page.Hosts[0], page.Hosts[1]
		if shop.Brake == nil || shop.Brake.Host != "example" || shop.RobotsOutcome != "rules" ||
			shop.RobotsFetchedAt.IsZero() || shop.ParkedURLs != 1 {
			t.Errorf("%s: shop %+v", action, shop)
		}
		if want := "its Crawl-delay of 2h is longer than max_crawl_delay, 1h"; slow.State != inspect.HostSuspended ||
			slow.HoldReason != want {
			t.Errorf("%s: slow %+v", action, slow)
		}
		d, err := f.HostDetail(ctx, "town", "SHOP.example")
		if err != nil || d.BlockedByRobots != 1 || len(d.ParkedByRule) != 1 ||
			d.ParkedByRule[0].Rule != "disallow: /till" || len(d.RobotsFiles) != 1 ||
			d.RobotsFiles[0].Bytes == 0 || d.RobotsFiles[0].Text != "" ||
			!d.RobotsFiles[0].ExpiresAt.After(time.Now()) {
			t.Fatalf("%s: %+v, %v", action, d, err)
		}
		e, err := town.ExplainURL(ctx, "http://shop.example/till?x=1")
		if err != nil || e.Robots.MayVisit == nil || *e.Robots.MayVisit || e.Robots.Line != 3 ||
			e.Host.Host != "shop.example" {
			t.Errorf("%s: explained %+v, %v", action, e, err)
		}
		r, err := api.FullReport(ctx, town.Report, api.ReportQuery{Limit: 1})
		if err != nil || r.HostCount != 3 || len(r.Hosts) != 1 || r.BlockedByRobots != 1 ||
			r.LargestDelayShortfall != 0 {
			t.Errorf("%s: report %+v, %v", action, r, err)
		}
	}
	for what, err := range map[string]error{
		"no project":        errorOf(f.Hosts(ctx, "none", api.HostQuery{})),
		"no host":           errorOf(f.HostDetail(ctx, "town", "none.example")),
		"report on no host": errorOf(api.FullReport(ctx, town.Report, api.ReportQuery{Host: "none.example"})),
		"no robots.txt":     errorOf(f.RobotsFile(ctx, "town", "http://none.example", "")),
		"no version":        errorOf(f.RobotsFile(ctx, "town", "http://shop.example", strings.Repeat("a", 64))),
	} {
		if problemStatus(err) != http.StatusNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"order":  errorOf(f.Hosts(ctx, "town", api.HostQuery{Sort: "luck"})),
		"state":  errorOf(f.Hosts(ctx, "town", api.HostQuery{State: "sad"})),
		"offset": errorOf(f.Hosts(ctx, "town", api.HostQuery{Offset: -1})),
		"limit":  errorOf(f.Hosts(ctx, "town", api.HostQuery{Limit: 1001})),
		"URL":    errorOf(town.ExplainURL(ctx, "shop")), "host": errorOf(f.HostDetail(ctx, "town", "a/b")),
		"origin": errorOf(f.RobotsFile(ctx, "town", "http://shop.example/x", "")),
		"report": errorOf(api.FullReport(ctx, town.Report, api.ReportQuery{Limit: -1})),
	} {
		if problemStatus(err) != http.StatusUnprocessableEntity {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

// Hosts returns pages of hosts in every order, and filters them.
func TestServeHostOrders(t *testing.T) {
	t.Parallel()
	f := startTownDaemon(t)
	for by := range inspect.HostSortKeys {
		var up, down []string
		for i := range 3 {
			for _, q := range []api.HostQuery{{Sort: by, Offset: i, Limit: 1},
				{Sort: by, Offset: i, Limit: 1, Descending: true}} {
				page, err := f.Hosts(t.Context(), "town", q)
				if err != nil || len(page.Hosts) != 1 {
					t.Fatalf("%+v: %+v, %v", q, page, err)
				}
				if q.Descending {
					down = append(down, page.Hosts[0].Host)
				} else {
					up = append(up, page.Hosts[0].Host)
				}
			}
		}
		slices.Reverse(down)
		if !slices.Equal(up, down) {
			t.Errorf("by %q: up %q, down %q", by, up, down)
		}
		for want, sortedPositions := range map[string][]string{"shop.example": {"requests 2", "state 2", "queued 0"},
			"slow.example":   {"host 2", "state 1"},
			"broken.example": {"host 0", "failures 2", "robots_age 2"}} {
			for _, position := range sortedPositions {
				if order, at, _ := strings.Cut(position, " "); order == by && up[at[0]-'0'] != want {
					t.Errorf("by %q: %q, want %s", by, up, position)
				}
			}
		}
	}
	page, err := f.Hosts(t.Context(), "town", api.HostQuery{Search: " OP.exam", State: "done"})
	if err != nil || page.Total != 1 || page.Hosts[0].Host != "shop.example" || page.HostsByState["held"] != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = f.Hosts(t.Context(), "town", api.HostQuery{Search: "op", State: "held"}); err != nil ||
		page.Total != 0 || page.Hosts == nil {
		t.Errorf("%+v, %v", page, err)
	}
}

// A changed robots.txt file is returned with its earlier version, after a restart too.
func TestServeRobotsHistory(t *testing.T) {
	var version atomic.Int32
	texts := []string{"User-agent: *\nDisallow: /a\n",
		"User-agent: *\nDisallow: /b\xff\nCrawl-delay: 0.01\nSitemap: http://h.example/s.xml\nHost: " +
			"https://www.h.example\n"}
	site := crawltest.Site{Host: "h.example", Fallback: crawltest.StaticPage(crawltest.HTML("")),
		Robots: func(time.Time) crawltest.RobotsSpec {
			return crawltest.RobotsSpec{Response: crawltest.Text(texts[version.Load()])}
		}}
	f := newDaemonFixture(t, site)
	f.start(true)
	f.PutProjectFile("h", f.ProjectYAML("http://h.example/", daemontest.NoDelayYAML, "robots: {max_ttl: 1ms}"))
	f.ReloadAndFind("h")
	f.WaitForState("h", api.StateDone)
	first, err := f.RobotsFile(t.Context(), "h", "http://h.example", "")
	if err != nil || first.Text != texts[0] || len(first.History) != 1 || first.SHA256 != first.History[0].SHA256 {
		t.Fatalf("%+v, %v", first, err)
	}
	version.Store(1)
	addResult, err := f.inspector("h").AddURLs(t.Context(), lineSeq("http://h.example/new"))
	if err != nil || addResult.Added != 1 {
		t.Fatalf("%+v, %v", addResult, err)
	}
	var now *api.RobotsFile
	daemontest.WaitUntil(t, "the new robots.txt is there", func() bool {
		now, err = f.RobotsFile(t.Context(), "h", "http://h.example", "")
		return err == nil && now.SHA256 != first.SHA256
	})
	f.Stop()
	f.start(false)
	if now, err = f.RobotsFile(t.Context(), "h", "http://h.example/", ""); err != nil ||
		now.Text != strings.ToValidUTF8(texts[1], "\ufffd") ||
		now.CrawlDelay != api.Milliseconds(10*time.Millisecond) ||
		!slices.Equal(now.Sitemaps, []string{"http://h.example/s.xml"}) ||
		now.MainMirror != "https://www.h.example" || len(now.History) != 2 ||
		now.Bytes != len(texts[1]) || now.Outcome != "rules" {
		t.Errorf("now %+v, %v", now, err)
	}
	old, err := f.RobotsFile(t.Context(), "h", "http://h.example", first.SHA256)
	if err != nil || old.Text != texts[0] || old.Bytes != len(texts[0]) || old.SHA256 != first.SHA256 ||
		len(old.Sitemaps) != 0 || old.MainMirror != "" {
		t.Errorf("old %+v, %v", old, err)
	}
	if d := api.DiffRobotsLines(old, now); d.AddedLineCount != 4 || d.RemovedLineCount != 1 {
		t.Errorf("diff %+v", d)
	}
}

// lineSeq yields lines.
func lineSeq(lines ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// Added URLs are queued in every state of the project, and make a project that was done visit them.
// They are on the disk when the daemon confirms them. URLs before an error in the input are queued.
func TestServeAddURLs(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.start(true)
	f.PutProjectFile("p", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML, "scope: {max_depth: 1}"))
	f.ReloadAndFind("p")
	f.WaitForState("p", api.StateDone)
	in, err := f.inspector("p").AddURLs(t.Context(),
		lineSeq("# a list", "", "http://shop.example/new # and a comment", "http://shop.example/new",
			`{"url":"http://shop.example/deep","depth":2}`, "nothing", "{broken", "http://elsewhere.example/"))
	want := &api.AddURLsResult{Added: 1, Duplicates: 1, Refused: 2, InvalidLines: 2, Refusals: in.Refusals}
	if err != nil || fmt.Sprintf("%+v", in) != fmt.Sprintf("%+v", want) || len(in.Refusals) != 2 {
		t.Errorf("%+v, %v", in, err)
	}
	daemontest.WaitUntil(t, "the new page is visited", func() bool {
		return slices.Contains(daemontest.RequestedPages(f.Web.Log()), "http://shop.example/new")
	})
	f.WaitForState("p", api.StateDone)
	f.DoActions("p", api.ActionStop)
	broken := errors.New("the client has gone away")
	in, err = f.inspector("p").AddURLs(t.Context(), func(yield func(string, error) bool) {
		_ = yield("http://shop.example/late", nil) && yield("", broken)
	})
	if in.Added != 1 || !errors.Is(err, broken) {
		t.Errorf("%+v, %v", in, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, err = f.inspector("p").AddURLs(ctx, func(yield func(string, error) bool) {
		for i := range engine.SeedBatchSize + 1 {
			if !yield(fmt.Sprintf("http://shop.example/many/%d", i), nil) {
				return
			}
		}
		cancel()
		yield("", ctx.Err())
	})
	if in.Added != engine.SeedBatchSize+1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", in, err)
	}
	if p := f.GetProject("p"); p.FrontierCounts.QueuedURLs != engine.SeedBatchSize+2 {
		t.Errorf("%+v is queued", p.FrontierCounts)
	}
	if _, err := f.Inspector(t.Context(), "none"); problemStatus(err) != http.StatusNotFound {
		t.Errorf("inspector of a missing project: %v", err)
	}
}

// A project can be deleted, and a daemon can end, while a client has not read the answer to a query.
func TestUnreadAnswerKeepsNothingOpen(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.start(false)
	var unread []func() (*api.FrontierURL, error, bool)
	for _, name := range []string{"deleted", "kept"} {
		f.PutProjectFile(name, f.ProjectYAML("http://shop.example/", "scope: {max_depth: 2}"))
		f.ReloadAndFind(name)
		lines := make([]string, 500)
		for i := range lines {
			lines[i] = fmt.Sprintf("http://shop.example/%d", i)
		}
		i := f.inspector(name)
		if _, err := i.AddURLs(t.Context(), lineSeq(lines...)); err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(i.FrontierURLs(t.Context(), api.FrontierURLQuery{}))
		t.Cleanup(stop)
		if _, err, _ := next(); err != nil {
			t.Fatal(err)
		}
		unread = append(unread, next)
	}
	if err := f.DeleteProject(t.Context(), "deleted"); err != nil {
		t.Error(err)
	}
	f.Stop()
	for _, next := range unread {
		err := error(nil)
		for more := true; more && err == nil; {
			_, err, more = next()
		}
		if problemStatus(err) != http.StatusServiceUnavailable {
			t.Errorf("the rest of the answer ends with %v", err)
		}
	}
}
