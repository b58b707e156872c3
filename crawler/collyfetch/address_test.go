package collyfetch_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestConnectionsToABusyAddress are refused before anything is sent, whether
// they must be made or were kept open.
func TestConnectionsToABusyAddress(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "kept.test"}, crawltest.Site{Host: "new.test"})
	fetcher, err := collyfetch.New(collyfetch.Config{UserAgent: userAgent, ConnectTo: serve(t, web), AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	const kept, fresh = "http://kept.test/robots.txt", "http://new.test/robots.txt"
	if _, err := fetcher.Fetch(t.Context(), ticketFor(t, kept)); err != nil {
		t.Fatal(err)
	}
	limits := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1, IPLoopback: true})
	other, err := limits.Admit(time.Now(), "other.test", time.Time{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Bind(time.Now(), netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{kept, fresh} {
		var busy *politeness.Busy
		if _, err := fetcher.Fetch(t.Context(), ticketOf(t, limits, url)); !errors.As(err, &busy) || !errors.Is(err, decorum.NotDue) {
			t.Errorf("%s: %v, want Busy", url, err)
		}
	}
	if n := len(web.Log()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
	limits.Leave(other, time.Now())
	limits = politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1, IPLoopback: true})
	ticket := ticketOf(t, limits, fresh)
	if _, err := fetcher.Fetch(t.Context(), ticket); err != nil {
		t.Errorf("an address that is free: %v", err)
	}
	var busy *politeness.Busy
	if _, err := fetcher.Fetch(t.Context(), ticketOf(t, limits, kept)); !errors.As(err, &busy) {
		t.Errorf("the visit before has not ended: %v, want Busy", err)
	}
}
