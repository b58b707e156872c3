package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// freshSite returns a site of pages that are fresh by different headers.
func freshSite() crawltest.Site {
	respond := func(name string, value func(time.Time) string) crawltest.PageFunc {
		return func(r crawltest.PageRequest) crawltest.Response {
			res := crawltest.HTML("x")
			res.Header.Set(name, value(r.ReceivedAt))
			return res
		}
	}
	return crawltest.Site{
		Host: "fresh.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nCrawl-delay: 0.01\n")}),
		Pages: map[string]crawltest.PageFunc{
			"/week": respond("Cache-Control", func(time.Time) string { return "max-age=604800" }),
			"/expires": respond("Expires", func(at time.Time) string {
				return at.Add(48 * time.Hour).UTC().Format(http.TimeFormat)
			}),
			"/old": respond("Last-Modified", func(time.Time) string { return "Mon, 01 Jan 1990 00:00:00 GMT" }),
			"/feed": func(r crawltest.PageRequest) crawltest.Response {
				res := crawltest.ResponseOfType("application/rss+xml", "<rss version='2.0'><channel></channel></rss>")
				res.Header.Set("Cache-Control", "max-age=604800")
				return res
			},
			"/plain": crawltest.StaticPage(crawltest.HTML("x")),
		},
	}
}

// explain says until when the answer of a page is fresh, by what, and for how long that counts, which
// the project bounds. The time of the revisit is that of the crawl.
func TestExplainFreshness(t *testing.T) {
	t.Parallel()
	const byMaxAge, byExpires, byLastModified = " by Cache-Control: max-age=604800", " by Expires",
		" by a tenth of the time since Last-Modified"
	type explained struct {
		path string
		rest time.Duration
		says string // about freshness; empty: nothing
	}
	for _, tt := range []struct {
		revisit string
		pages   []explained
	}{
		{"{mode: interval, every: 1h}", []explained{{"/week", 7 * 24 * time.Hour, byMaxAge},
			{"/feed", 24 * time.Hour, byMaxAge + ", which counts for 24h at most"},
			{"/expires", 48 * time.Hour, byExpires}, {"/old", time.Hour, ""}, {"/plain", time.Hour, ""}}},
		{"{mode: interval, every: 1h, max_freshness: 36h}", []explained{
			{"/week", 36 * time.Hour, byMaxAge + ", which counts for 36h at most"},
			{"/expires", 36 * time.Hour, byExpires + ", which counts for 36h at most"}}},
		{"{mode: interval, every: 1h, max_freshness: 0}",
			[]explained{{"/week", time.Hour, ""}, {"/expires", time.Hour, ""}}},
		{"{mode: adaptive, min: 1h, max: 4h}", []explained{ // their geometric mean is 2 h
			{"/week", 7 * 24 * time.Hour, byMaxAge},
			{"/old", 4 * time.Hour, byLastModified + ", which counts for 4h at most"},
			{"/plain", 2 * time.Hour, ""}}},
		{"{mode: adaptive, min: 1h, max: 4h, max_heuristic_freshness: 3h}", []explained{
			{"/old", 3 * time.Hour, byLastModified + ", which counts for 3h at most"}}},
		{"{mode: adaptive, min: 1h, max: 4h, max_heuristic_freshness: 0}", []explained{{"/old", 2 * time.Hour, ""}}},
	} {
		v := daemontest.NewWebFixture(t, freshSite())
		file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
			"['http://fresh.example/week', 'http://fresh.example/expires', 'http://fresh.example/old', "+
			"'http://fresh.example/plain', 'http://fresh.example/feed']\n"+
			"store: {path: "+v.DataDir()+"}\nrevisit: "+tt.revisit+"\n")
		runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone)
		for _, p := range tt.pages {
			e := decodeJSON[api.URLExplanation](t, runExplain(t, v, "--data", v.DataDir(), "--format=json",
				"http://fresh.example"+p.path).stdout)
			rest := e.Visit.NotBefore.Sub(e.FrontierState.Entry.VisitHistorySummary.VisitedAt)
			if rest < p.rest-2*time.Second || rest > p.rest { // HTTP dates are in seconds
				t.Errorf("revisit: %s: %s rests for %v, want %v", tt.revisit, p.path, rest, p.rest)
			}
			if isFresh := p.says != ""; isFresh == e.Visit.FreshUntil.IsZero() || isFresh != (e.Visit.FreshBy != "") ||
				isFresh != strings.Contains(e.Visit.Reason, "fresh") || !strings.HasSuffix(e.Visit.Reason, p.says) {
				t.Errorf("revisit: %s: %s: %+v, want %q", tt.revisit, p.path, e.Visit, p.says)
			}
		}
	}
}
