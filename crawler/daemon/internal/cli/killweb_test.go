package cli

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// randomLifetime says how long a crawl lives: mostly not long, so that it is often cut
// while it starts or makes its first visits, and now and then long enough that
// what it did at first must be kept.
func randomLifetime(rnd *rand.Rand) time.Duration {
	bounds := []time.Duration{60 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second}
	return time.Duration(rnd.Int64N(int64(bounds[rnd.IntN(len(bounds))])))
}

// A repeatedRequest is a page that was asked for again though its answer had been whole.
type repeatedRequest struct {
	url       string
	ageAtKill time.Duration // how long before a kill that answer had come; 0: it was in hand
}

// repeatedRequests returns the pages of a log that were asked for again, and what a
// kill has to do with it.
func repeatedRequests(log []crawltest.Exchange, kills []time.Time) (rs []repeatedRequest) {
	last := map[string]crawltest.Exchange{}
	for _, x := range log {
		before, repeated := last[x.URL]
		last[x.URL] = x
		if !repeated || before.Incomplete || before.Status >= 500 || before.Status == http.StatusTooManyRequests {
			continue
		}
		r := repeatedRequest{url: x.URL, ageAtKill: x.Start.Sub(before.End)}
		if i, _ := slices.BinarySearchFunc(kills, before.Start, time.Time.Compare); i < len(kills) && kills[i].Before(x.Start) {
			r.ageAtKill = max(0, kills[i].Sub(before.End))
		}
		rs = append(rs, r)
	}
	return rs
}
