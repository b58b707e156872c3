package api

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// How often an address may present a token that is none, or be in the audit without
// a good one, and how many addresses are remembered.
const (
	guessesPerSecond     = 0.5
	guessesAtOnce        = 20
	maxThrottledNetworks = 10_000
)

// A throttle slows who has no good token. It keeps two generations of
// addresses: when the young one is full it becomes the old one, which is forgotten.
type throttle struct {
	mu         sync.Mutex
	young, old map[string]*rate.Limiter
}

// allow reports whether one more may come from an address, and counts it.
func (t *throttle) allow(remote string) bool {
	network := connlimit.Network(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.young[network]
	if l == nil {
		if l = t.old[network]; l == nil {
			l = rate.NewLimiter(guessesPerSecond, guessesAtOnce)
		}
		if t.young == nil || len(t.young) >= maxThrottledNetworks {
			t.young, t.old = map[string]*rate.Limiter{}, t.young
		}
		t.young[network] = l
	}
	return l.Allow()
}

// retrySeconds is how long one waits until another guess is heard.
const retrySeconds = "2"

func tooMany() *Problem {
	return problem(http.StatusTooManyRequests, "too many tokens that are none, from this address: wait %s seconds", retrySeconds)
}
