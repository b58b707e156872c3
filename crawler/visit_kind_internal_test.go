package crawler

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestVisitKindOf: the kind follows from how the URL was found and from the URL that the clearance
// is for.
func TestVisitKindOf(t *testing.T) {
	page, feed, sitemap, target := mustParseURL(t, "http://a.test/page"), mustParseURL(t, "http://a.test/feed"),
		mustParseURL(t, "http://a.test/sitemap.xml"), mustParseURL(t, "http://b.test/robots.txt")
	robotsURL, tdmrep := page.Origin().RobotsURL(), mustParseURL(t, "http://a.test/.well-known/tdmrep.json")
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.Config{})
	g := gate.New(gate.Config{Agent: agent}, store)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	forRobots, err := g.Check(t.Context(), now, page)
	if err != nil || !forRobots.IsForRobots() {
		t.Fatalf("%+v, %v", forRobots, err)
	}
	if _, err := g.RecordFetch(t.Context(), now, forRobots,
		&decorum.Response{URL: robotsURL, Status: 404}, nil); err != nil {
		t.Fatal(err)
	}
	clear := func(u decorum.URL) gate.Clearance {
		cl, err := g.Check(t.Context(), now, u)
		if err != nil {
			t.Fatal(err)
		}
		return cl
	}
	for _, tt := range []struct {
		entry      storage.Entry
		clearance  gate.Clearance
		want       VisitKind
		wantLedger string
	}{
		{storage.Entry{URL: page, Source: storage.SourceLink}, clear(page), PageVisit, ledger.KindPage},
		{storage.Entry{URL: page, Source: storage.SourceFeed}, clear(page), PageVisit, ledger.KindPage},
		{storage.Entry{URL: feed, Source: storage.SourceFeed, CallbackData: []byte(frontier.AnnouncedFeed)},
			clear(feed), FeedVisit, ledger.KindPage},
		{storage.Entry{URL: feed, Source: storage.SourceFeed, CallbackData: []byte(frontier.FeedPart)}, clear(feed),
			FeedVisit, ledger.KindPage},
		{storage.Entry{URL: sitemap, Source: storage.SourcePrerequisite}, clear(sitemap),
			SitemapVisit, ledger.KindSitemap},
		{storage.Entry{URL: page, Source: storage.SourceLink}, forRobots, RobotsVisit, ledger.KindRobotsTXT},
		{storage.Entry{URL: sitemap, Source: storage.SourcePrerequisite}, forRobots, RobotsVisit, ledger.KindRobotsTXT},
		{storage.Entry{URL: target, RobotsFor: page.Origin(), Source: storage.SourcePrerequisite}, forRobots,
			RobotsRedirectVisit, ledger.KindRobotsTXT},
		{storage.Entry{URL: page, Source: storage.SourceLink}, clear(tdmrep), TDMRepVisit, ledger.KindTDMRep},
		{storage.Entry{URL: page, UncleanedURL: feed, UseUncleanedURL: true}, clear(feed), PageVisit, ledger.KindPage},
		{storage.Entry{URL: robotsURL, Source: storage.SourcePrerequisite}, clear(robotsURL),
			RobotsRefresh, ledger.KindSitemap},
	} {
		got := visitKindOf(storage.Lease{Entry: tt.entry}, tt.clearance)
		if got != tt.want || got.Ledger() != tt.wantLedger {
			t.Errorf("%s by %v, cleared for %s: kind %d (%s), want %d (%s)", tt.entry.URL, tt.entry.Source,
				tt.clearance.URL(), got, got.Ledger(), tt.want, tt.wantLedger)
		}
	}
}

func mustParseURL(t *testing.T, text string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
