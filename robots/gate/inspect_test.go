package gate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestPostponedReason proves that PostponedReason agrees with Check and takes no fetch lease.
func TestPostponedReason(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/")
	closed := func(want string) {
		t.Helper()
		c, err := s.gate.PostponedReason(t.Context(), s.now, page.Origin())
		got := ""
		if c != nil {
			got = c.Reason
		}
		if err != nil || got != want {
			t.Errorf("postponed: %q, %v; want %q", got, err, want)
		}
		checkErr := s.gate.CheckKnown(t.Context(), s.now, page)
		if errors.Is(checkErr, decorum.Unreachable) != (want != "") {
			t.Errorf("CheckKnown says %v; want %q", checkErr, want)
		}
		if want == "" {
			return
		}
		if _, err := s.gate.Check(t.Context(), s.now, page); fmt.Sprint(err) != fmt.Sprint(checkErr) {
			t.Errorf("CheckKnown says %v, and Check %v", checkErr, err)
		}
	}
	closed("")
	s.fetchRobots(page, respondWith(500, ""))
	closed("robots.txt: status 500")
	s.wantCheck(page, unreachable)
	s.now = s.now.Add(5 * time.Minute)
	closed("")
	s.fetchRobots(page, respondWith(200, "")) // no caller has the lease
	closed("")
}
