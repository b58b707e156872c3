package crawler

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// newPrerequisites returns prerequisites that know no origin.
func (p *partsFixture) newPrerequisites(settings Settings) *prerequisites {
	var b prerequisites
	table := p.newHostTable()
	b.beginRun(prerequisitesConfig{
		gate: p.gate, frontier: p.frontier, settings: settings.withDefaults(), hosts: table,
		cleaner: urlCleaner{gate: p.gate, frontier: p.frontier},
		outcomes: outcomePlanner{policy: politeness.Policy{}, settings: settings,
			counters: &counters{}, now: table.now},
		counters: &counters{}, log: p.log, now: table.now,
	})
	return &b
}

// parkURLs queues URLs and parks them.
func (p *partsFixture) parkURLs(t *testing.T, urls ...string) {
	t.Helper()
	for _, u := range urls {
		p.ack(t, p.leaseURL(t, u), leaseOutcome{outcome: storage.Park})
	}
}

// handleRobotsText answers the lookup of the robots.txt for l with a text, and returns the file on
// which clearances are based from then on.
func (p *partsFixture) handleRobotsText(t *testing.T, b *prerequisites, l storage.Lease,
	text string) gate.FetchSummary {
	t.Helper()
	result, err := b.handleRobots(t.Context(),
		visitOf(l, p.check(t, l.URL), http.StatusOK, http.Header{"Content-Type": {"text/plain"}}, text))
	if err != nil || result.outcome != storage.Requeue {
		t.Fatalf("the answer to robots.txt: outcome %v, error %v", result.outcome, err)
	}
	return p.check(t, l.URL).FetchSummary()
}

// checkOrigin fails the test unless the store has these numbers of URLs of l's origin.
func (p *partsFixture) checkOrigin(t *testing.T, when string, l storage.Lease, queued, parked int) {
	t.Helper()
	if info := p.originInfo(t, l.URL); info.QueuedURLs != queued || info.ParkedURLs != parked {
		t.Errorf("%s: %d URLs are queued and %d parked, want %d and %d", when, info.QueuedURLs,
			info.ParkedURLs, queued, parked)
	}
}

// TestRobotsIsActedUponOnce: a robots.txt queues its sitemaps and the parked URLs that it allows
// once, whichever crawl fetched it, until the file changes.
func TestRobotsIsActedUponOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "User-agent: *\nDisallow: /closed\nSitemap: http://a.test/map.xml\n"
		p := newPartsFixture(t)
		p.parkURLs(t, "http://a.test/open", "http://a.test/closed")
		b, l := p.newPrerequisites(Settings{}), p.leaseURL(t, "http://a.test/")
		act := func(b *prerequisites, file gate.FetchSummary) {
			t.Helper()
			if err := b.queueSitemapsAndUnparkOnce(t.Context(), l.URL.Origin(), file); err != nil {
				t.Fatal(err)
			}
		}
		file := p.handleRobotsText(t, b, l, text)
		p.ack(t, l, leaseOutcome{outcome: storage.Done})
		p.checkOrigin(t, "before a URL is judged", l, 0, 2)
		act(b, file)
		p.checkOrigin(t, "when the first URL is judged", l, 2, 1)
		for range 2 { // the sitemap and the page: as if the scope had excluded them
			p.ack(t, p.leaseOne(t), leaseOutcome{outcome: storage.Park})
		}
		p.checkOrigin(t, "then", l, 0, 3)
		act(b, file)
		p.checkOrigin(t, "when the next URL is judged", l, 0, 3)
		act(p.newPrerequisites(Settings{}), file)
		p.checkOrigin(t, "when another crawl judges one", l, 0, 3)
		act(p.newPrerequisites(Settings{NoSitemaps: true}), file)
		p.checkOrigin(t, "when a crawl that reads no sitemaps judges one", l, 2, 1)
	})
}

// TestClosingRobotsIsLogged: a new robots.txt that disallows waiting URLs is logged once, with how many
// there are. URLs that were disallowed before do not count.
func TestClosingRobotsIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		var log bytes.Buffer
		p.log = slog.New(slog.NewTextHandler(&log, nil))
		b := p.newPrerequisites(Settings{})
		// logged returns the log of following a robots.txt a day after the one before.
		logged := func(l storage.Lease, status int, text string) string {
			t.Helper()
			time.Sleep(25 * time.Hour)
			log.Reset()
			header := http.Header{"Content-Type": {"text/plain"}}
			if _, err := b.handleRobots(t.Context(), visitOf(l, p.check(t, l.URL), status, header, text)); err != nil {
				t.Fatal(err)
			}
			file := p.check(t, l.URL).FetchSummary()
			for range 2 {
				if err := b.queueSitemapsAndUnparkOnce(t.Context(), l.URL.Origin(), file); err != nil {
					t.Fatal(err)
				}
			}
			return log.String()
		}
		revisited := p.leaseURL(t, "http://a.test/closed/1")
		p.ack(t, revisited, leaseOutcome{outcome: storage.RevisitAt, notBefore: time.Now().Add(1000 * time.Hour)})
		l := p.leaseURL(t, "http://a.test/")
		p.discover(t, storage.Entry{URL: mustParseURL(t, "http://a.test/closed/2")},
			storage.Entry{URL: mustParseURL(t, "http://a.test/closed/3")},
			storage.Entry{URL: mustParseURL(t, "http://a.test/never")},
			storage.Entry{URL: mustParseURL(t, "http://b.test/closed/4")})
		const first = "User-agent: *\nDisallow: /never\n"
		const closing = first + "Disallow: /closed\n"
		for i, tt := range []struct {
			status     int
			text, want string // want empty: nothing is logged
		}{
			{http.StatusOK, first, ""},
			{http.StatusOK, closing,
				`origin=http://a.test queued=2 revisits=1 of_waiting=5 example=http://a.test/closed/2 rule="disallow: /closed" line=3`},
			{http.StatusOK, closing + "# the same rules\n", ""},
			{http.StatusOK, first, ""},
			{http.StatusNotFound, "", ""},
			{http.StatusOK, closing, "queued=3 revisits=1"},
		} {
			got := logged(l, tt.status, tt.text)
			if !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") || strings.Count(got, "\n") > 1 {
				t.Errorf("file %d: logged %q, want %q", i, got, tt.want)
			}
		}
	})
}

// TestRobotsThatNobodyAnsweredIsLookedUpAgain: after an interrupted lookup of a robots.txt, the
// next lease may make it.
func TestRobotsThatNobodyAnsweredIsLookedUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		b, l := p.newPrerequisites(Settings{}), p.leaseURL(t, "http://a.test/")
		v := visitOf(l, p.check(t, l.URL), http.StatusOK, nil, "")
		if _, err := p.gate.Check(t.Context(), v.End, l.URL); err == nil {
			t.Fatal("two may look up the robots.txt")
		}
		v.Response, v.interrupted = nil, true
		if result, err := b.handleRobots(t.Context(), v); err != nil || result.outcome != storage.Requeue {
			t.Errorf("outcome %v, error %v", result.outcome, err)
		}
		if cl := p.check(t, l.URL); !cl.IsForRobots() {
			t.Error("no lease may look up the robots.txt any more")
		}
	})
}
