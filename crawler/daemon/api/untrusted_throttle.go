package api

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/decorum-crawler/decorum/internal/connlimit"
	"github.com/decorum-crawler/decorum/internal/recent"
)

// How often an address may present a token that is none, or be in the audit without
// a good one, and how many addresses are remembered at least, twice as many at most.
const (
	guessesPerSecond  = 0.5
	guessBurst        = 20
	throttledNetworks = 10_000
)

// An untrustedThrottle slows who has no good token.
type untrustedThrottle struct {
	mu       sync.Mutex                        // guards limiters
	limiters recent.Map[string, *rate.Limiter] // by network
}

// allow reports whether one more may come from an address, and counts it.
func (t *untrustedThrottle) allow(remote string) bool {
	network := connlimit.NetworkPrefix(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.limiters.Get(network, throttledNetworks)
	if !ok {
		l = rate.NewLimiter(guessesPerSecond, guessBurst)
		t.limiters.Put(network, l, throttledNetworks)
	}
	return l.Allow()
}

// retryAfterSeconds is how long one waits until another guess is heard.
const retryAfterSeconds = "2"

func tooManyRequestsProblem() *Problem {
	return newProblem(http.StatusTooManyRequests, "too many tokens that are none, from this address: wait %s seconds", retryAfterSeconds)
}
