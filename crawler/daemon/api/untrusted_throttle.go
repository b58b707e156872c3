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
	guessBurst           = 20
	maxThrottledNetworks = 10_000
)

// An untrustedThrottle slows who has no good token. It keeps two generations of
// addresses: when the young one is full it becomes the old one, which is forgotten.
type untrustedThrottle struct {
	mu                            sync.Mutex
	recentLimiters, olderLimiters map[string]*rate.Limiter
}

// allow reports whether one more may come from an address, and counts it.
func (t *untrustedThrottle) allow(remote string) bool {
	network := connlimit.NetworkPrefix(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.recentLimiters[network]
	if l == nil {
		if l = t.olderLimiters[network]; l == nil {
			l = rate.NewLimiter(guessesPerSecond, guessBurst)
		}
		if t.recentLimiters == nil || len(t.recentLimiters) >= maxThrottledNetworks {
			t.recentLimiters, t.olderLimiters = map[string]*rate.Limiter{}, t.recentLimiters
		}
		t.recentLimiters[network] = l
	}
	return l.Allow()
}

// retryAfterSeconds is how long one waits until another guess is heard.
const retryAfterSeconds = "2"

func tooManyRequestsProblem() *Problem {
	return newProblem(http.StatusTooManyRequests, "too many tokens that are none, from this address: wait %s seconds", retryAfterSeconds)
}
