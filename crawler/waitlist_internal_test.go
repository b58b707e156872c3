package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestWaitlistKeepsLateArrivals: an origin that was refused after a permit was requested stays in
// the waitlist when that permit removes its origin, however late.
func TestWaitlistKeepsLateArrivals(t *testing.T) {
	u, err := decorum.ParseURL("http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	var w originsToWake
	w.add(u.Origin())
	arrival := w.lastArrivalNumber()
	w.removeUnlessNewer(u.Origin(), arrival)
	if len(w.hosts()) != 0 {
		t.Error("an origin still waits after its permit")
	}
	w.add(u.Origin())
	w.removeUnlessNewer(u.Origin(), arrival)
	if len(w.takeHost("a.test")) != 1 || len(w.hosts()) != 0 {
		t.Error("an origin that arrived later was removed, or stays after it was taken")
	}
}
