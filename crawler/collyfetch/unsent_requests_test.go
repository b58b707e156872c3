package collyfetch

import (
	"bytes"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler"
)

// TestDeferredRequestsHoldNoBodies: unsentRequests are limited by number, so they do not keep
// bodies, which the queue has.
func TestDeferredRequestsHoldNoBodies(t *testing.T) {
	var a unsentRequests
	page := &colly.Request{Method: "POST", Ctx: colly.NewContext(), Body: bytes.NewReader(make([]byte, 1<<20))}
	a.put(crawler.Ticket{}, page)
	if taken := a.take(crawler.Ticket{}); taken == nil || taken.Ctx != page.Ctx || taken.Body != nil {
		t.Errorf("remembered is %+v, want the request without its body", taken)
	}
	if page.Body == nil {
		t.Error("the request that the callbacks have was written to")
	}
}
