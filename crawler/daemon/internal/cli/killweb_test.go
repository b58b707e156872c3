package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// randomLifetime returns how long a crawl runs before it is killed. Most lifetimes are short, so that
// kills often hit the start or the first visits; a few are long enough that the first visits must have
// been written.
func randomLifetime(rnd *rand.Rand) time.Duration {
	bounds := []time.Duration{60 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond,
		1500 * time.Millisecond, 4 * time.Second}
	return time.Duration(rnd.Int64N(int64(bounds[rnd.IntN(len(bounds))])))
}

// A repeatedRequest is a request for a page that had already been answered completely.
type repeatedRequest struct {
	url       string
	ageAtKill time.Duration // how long before a kill that answer came; 0: it was in flight
}

// repeatedRequests returns the repeated requests in a log, and how long the earlier answer had been
// complete at the next kill, or at the repetition if no kill came between. Each process except the
// last was killed before the next one started, and all of its requests are earlier than that start.
func repeatedRequests(log []crawltest.Exchange, starts, kills []time.Time) (rs []repeatedRequest) {
	last := map[string]crawltest.Exchange{}
	for _, x := range log {
		before, repeated := last[x.URL]
		last[x.URL] = x
		if !repeated || before.Incomplete || before.Status >= 500 || before.Status == http.StatusTooManyRequests {
			continue
		}
		r := repeatedRequest{url: x.URL, ageAtKill: x.Start.Sub(before.End)}
		if p := processAt(starts, before.Start); p < processAt(starts, x.Start) {
			r.ageAtKill = max(0, kills[p].Sub(before.End))
		}
		rs = append(rs, r)
	}
	return rs
}

// processAt returns the index of the last process that started before a moment, -1 if none did.
func processAt(starts []time.Time, at time.Time) int {
	next, _ := slices.BinarySearchFunc(starts, at, time.Time.Compare)
	return next - 1
}

// describeViolations returns text that helps to find the cause of violations: when each process
// started and was killed, and the ledger's records of the URLs that broke a rule. Times count from the
// first request, as in the judge's report.
func (v *killedCrawl) describeViolations(report crawltest.JudgeReport) string {
	var b strings.Builder
	log := v.web.Log()
	if len(log) == 0 {
		return ""
	}
	since := func(at time.Time) string { return fmt.Sprintf("%.6f s", at.Sub(log[0].Start).Seconds()) }
	for i, start := range v.starts {
		fmt.Fprintf(&b, "process %d: started at %s", i, since(start))
		if i < len(v.kills) {
			fmt.Fprintf(&b, ", killed at %s", since(v.kills[i]))
		}
		b.WriteByte('\n')
	}
	urls, requests := map[string]bool{}, map[int64]bool{}
	for _, o := range report.Violations {
		urls[o.Exchange.URL] = true
	}
	for _, x := range log {
		if urls[x.URL] {
			fmt.Fprintf(&b, "request at %s by process %d: %s, answer %d ended at %s, incomplete %v\n",
				since(x.Start), processAt(v.starts, x.Start), x.URL, x.Status, since(x.End), x.Incomplete)
		}
	}
	for r, err := range ledger.Records(datadir.StateDir(v.data).Path(datadir.LedgerDir)) {
		if err != nil {
			fmt.Fprintf(&b, "the ledger: %v\n", err)
			break
		}
		switch {
		case r.Request != nil && urls[r.Request.URL]:
			requests[r.Number] = true
		case r.Response != nil && requests[r.Response.RequestNumber]:
		case r.Refusal != nil && urls[r.Refusal.URL]:
		default:
			continue
		}
		text, err := json.Marshal(r)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "record at %s by process %d: %s\n", since(r.Time), processAt(v.starts, r.Time), text)
	}
	return b.String()
}
