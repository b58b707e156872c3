package crawler_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// newClearanceAndPermits returns a clearance for the robots.txt of an origin of a.test, and permits
// for a.test and b.test.
func newClearanceAndPermits(t *testing.T, origin string) (gate.Clearance, politeness.Permit, politeness.Permit) {
	t.Helper()
	u, err := decorum.ParseURL(origin)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	clearance, err := gate.New(gate.Config{}, memory.New(memory.Config{})).Check(t.Context(), now, u)
	if err != nil {
		t.Fatal(err)
	}
	limiter := politeness.NewLimiter(politeness.LimiterConfig{})
	a, decisionA := limiter.Reserve(now, "a.test", politeness.PermitRequest{NotBefore: now})
	b, decisionB := limiter.Reserve(now, "b.test", politeness.PermitRequest{NotBefore: now})
	if err := errors.Join(decisionA.Err(), decisionB.Err()); err != nil {
		t.Fatal(err)
	}
	return clearance, a, b
}

func TestTicketNeedsBothProofs(t *testing.T) {
	clearance, permit, other := newClearanceAndPermits(t, "http://a.test/")
	for _, tt := range []struct {
		name      string
		clearance gate.Clearance
		permit    politeness.Permit
	}{
		{"none", gate.Clearance{}, politeness.Permit{}},
		{"no clearance", gate.Clearance{}, permit},
		{"no permit", clearance, politeness.Permit{}},
		{"a permit for another host", clearance, other},
	} {
		ticket, err := crawler.NewTicket(tt.clearance, tt.permit)
		if !errors.Is(err, decorum.Unticketed) {
			t.Errorf("%s: %v, want Unticketed", tt.name, err)
		}
		if err := ticket.Redeem("http://a.test/robots.txt"); !errors.Is(err, decorum.Unticketed) {
			t.Errorf("%s: using it: %v, want Unticketed", tt.name, err)
		}
	}
}

// TestZeroTicket: every check that comes before the first byte refuses the zero Ticket.
func TestZeroTicket(t *testing.T) {
	var zero crawler.Ticket
	for question, err := range map[string]error{
		"Use":     zero.Redeem("http://a.test/"),
		"Connect": zero.ClaimServerAddr(netip.MustParseAddr("192.0.2.1")),
		"Send":    zero.RecordSend(t.Context()),
	} {
		if !errors.Is(err, decorum.Unticketed) {
			t.Errorf("%s: %v, want Unticketed", question, err)
		}
	}
	if zero.CheckMaySend(t.Context()) == nil {
		t.Error("what was never good has not lapsed")
	}
}

func TestTicketIsForOneRequestToOneURL(t *testing.T) {
	clearance, permit, _ := newClearanceAndPermits(t, "http://a.test/")
	ticket, err := crawler.NewTicket(clearance, permit)
	if err != nil {
		t.Fatal(err)
	}
	copied := ticket
	for _, url := range []string{"http://a.test/", "https://a.test/robots.txt", "http://a.test:81/robots.txt",
		"http://b.test/robots.txt", "", "%"} {
		if err := ticket.Redeem(url); !errors.Is(err, decorum.Unticketed) {
			t.Errorf("used for %q: %v, want Unticketed", url, err)
		}
	}
	if err := ticket.Redeem("http://a.test/robots.txt"); err != nil {
		t.Errorf("its own URL, after the refusals: %v", err)
	}
	if err := copied.Redeem("http://a.test/robots.txt"); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("a copy, used again: %v, want Unticketed", err)
	}
}
