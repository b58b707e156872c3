package api

import (
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// How often an address may present a token that is none, or be in the audit without
// a good one, and how many addresses are remembered.
const (
	guessesPerSecond = 0.5
	guessesAtOnce    = 20
	mostAddresses    = 10_000
)

// A throttle slows who has no good token. It keeps two generations of
// addresses: when the young one is full it becomes the old one, which is forgotten.
type throttle struct {
	mu         sync.Mutex
	young, old map[string]*rate.Limiter
}

// allow reports whether one more may come from an address, and counts it.
func (t *throttle) allow(remote string) bool {
	network := networkOf(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.young[network]
	if l == nil {
		if l = t.old[network]; l == nil {
			l = rate.NewLimiter(guessesPerSecond, guessesAtOnce)
		}
		if t.young == nil || len(t.young) >= mostAddresses {
			t.young, t.old = map[string]*rate.Limiter{}, t.young
		}
		t.young[network] = l
	}
	return l.Allow()
}

// networkOf returns what of an address one holder has: of IPv6 a /64.
func networkOf(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	a := ap.Addr().Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p.String()
}

// retrySeconds is how long one waits until another guess is heard.
const retrySeconds = "2"

func tooMany() *Problem {
	return problem(http.StatusTooManyRequests, "too many tokens that are none, from this address: wait %s seconds", retrySeconds)
}
