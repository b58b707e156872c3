package httpfetch_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestConnectionsToABusyAddress: a visit to an address that another visit uses is refused before
// anything is sent, over a new connection and over a kept-open one.
func TestConnectionsToABusyAddress(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "kept.test"}, crawltest.Site{Host: "new.test"})
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent,
		ConnectToRules: serveWeb(t, web), AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	const reusedURL, newURL = "http://kept.test/robots.txt", "http://new.test/robots.txt"
	if _, err := fetcher.Fetch(t.Context(), robotsTicket(t, reusedURL)); err != nil {
		t.Fatal(err)
	}
	limits := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, LimitLoopback: true})
	other, d := limits.Reserve(time.Now(), "other.test", politeness.PermitRequest{})
	if d.Action != decorum.Proceed {
		t.Fatal(d.Err())
	}
	if err := other.ClaimServerAddr(time.Now(), netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{reusedURL, newURL} {
		_, err := fetcher.Fetch(t.Context(), ticketWithLimits(t, limits, url))
		if d, _ := decorum.DecisionOf(err); d.Reason != decorum.ReasonAddressBusy || !errors.Is(err, decorum.NotDue) {
			t.Errorf("%s: %v, want Busy", url, err)
		}
	}
	if n := len(web.Log()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
	limits.ReleaseAfterTransfer(other, time.Now())
	limits = politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, LimitLoopback: true})
	ticket := ticketWithLimits(t, limits, newURL)
	if _, err := fetcher.Fetch(t.Context(), ticket); err != nil {
		t.Errorf("an address that is free: %v", err)
	}
	_, err = fetcher.Fetch(t.Context(), ticketWithLimits(t, limits, reusedURL))
	if d, _ := decorum.DecisionOf(err); d.Reason != decorum.ReasonAddressBusy {
		t.Errorf("the visit before has not ended: %v, want Busy", err)
	}
}
