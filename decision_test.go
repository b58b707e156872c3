package decorum_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// DecisionOf finds a Decision through an error that wraps its error. The error has the text of the
// cause or the reason, and the kind of the cause or the reason.
func TestDecisionErr(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	cause := &decorum.Error{Op: "scope", URL: "http://a.test/", Kind: decorum.OutOfScope, Err: errors.New("too deep")}
	for _, tt := range []struct {
		d    decorum.Decision
		text string
		kind decorum.ErrorKind // empty: no kind
	}{
		{decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonScope, Cause: cause},
			"scope http://a.test/: out of scope: too deep", decorum.OutOfScope},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonHostRest, Rest: 3 * time.Second},
			"the host is not due for another 3s", decorum.NotDue},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonHostBusy, Until: at},
			"the host is busy until 2026-11-22T12:00:00Z", decorum.NotDue},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonAddressBusy, Until: at, Detail: "192.0.2.1"},
			"the address 192.0.2.1 is busy until 2026-11-22T12:00:00Z", decorum.NotDue},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonRequestRate, Until: at},
			"the crawl's own limit of requests is busy until 2026-11-22T12:00:00Z", decorum.NotDue},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses, Until: at,
			Detail: "what others say"}, "what others say is busy until 2026-11-22T12:00:00Z", decorum.NotDue},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonNetwork, Detail: "no host answers"},
			"the crawl is paused: no host answers", decorum.NotDue},
		{decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonVisitHours, Until: at},
			"outside the hours of visits; closed until 2026-11-22T12:00:00Z", ""},
		{decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonCrawlDelay, Until: at, Rest: 2 * time.Hour,
			Limit: int64(time.Hour)}, "its Crawl-delay of 2h0m0s is longer than max_crawl_delay, 1h0m0s; closed " +
			"until 2026-11-22T12:00:00Z", ""},
		{decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonHostPages, Until: at, Limit: 5},
			"the host has had its 5 pages; closed until 2026-11-22T12:00:00Z", ""},
		{decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonHostBytes, Until: at, Limit: 9},
			"the host has sent its 9 bytes; closed until 2026-11-22T12:00:00Z", ""},
		{decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonPort, Detail: "port 22 is closed"},
			"port 22 is closed", ""},
		{decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonPageLimit}, "page limit", ""},
	} {
		err := tt.d.Err()
		if err == nil || err.Error() != tt.text {
			t.Errorf("%s: %v, want %q", tt.d.Reason, err, tt.text)
		}
		for _, kind := range []decorum.ErrorKind{decorum.OutOfScope, decorum.Disallowed, decorum.Pending,
			decorum.Unreachable, decorum.NotDue, decorum.LocalFailure, decorum.Dropped, ""} {
			if errors.Is(err, kind) != (kind != "" && kind == tt.kind) {
				t.Errorf("%s: it is of kind %q: %t", tt.d.Reason, kind, errors.Is(err, kind))
			}
		}
		wrapped := fmt.Errorf("get: %w", &decorum.Error{Op: "fetch", Kind: decorum.Unreachable, Err: err})
		if d, ok := decorum.DecisionOf(wrapped); !ok || d != tt.d {
			t.Errorf("%s: through what wraps it: %+v, %t", tt.d.Reason, d, ok)
		}
	}
	if d, ok := decorum.DecisionOf(cause); ok || d != (decorum.Decision{}) {
		t.Errorf("of another error: %+v, %t", d, ok)
	}
	if _, ok := decorum.DecisionOf(nil); ok || (decorum.Decision{}).Err() != nil {
		t.Error("a visit that may proceed has an error")
	}
}

func TestActionString(t *testing.T) {
	for a, want := range map[decorum.Action]string{decorum.Proceed: "proceed", decorum.Postpone: "postpone",
		decorum.Suspend: "suspend", decorum.Refuse: "refuse", 9: "Action(9)"} {
		if got := a.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(a), got, want)
		}
	}
}
