package politeness

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/internal/backoff"
)

// NoDelay as Policy.Delay sets no delay between visits. It is meant for your own servers.
// Crawl-delay, Retry-After, back-off and the adaptive delay still apply.
const NoDelay time.Duration = -1

// A Policy is the configured politeness of a crawl. The zero Policy is polite: each field documents
// its default. No value turns politeness off.
type Policy struct {
	// Delay is the rest between the end of one visit to a host and the start of the next. Default
	// 1 s.
	Delay time.Duration
	// AdaptiveFactor makes the rest at least this many times as long as the last visit took.
	// Default 1; negative: off; at most 1000.
	AdaptiveFactor float64
	// Concurrency is how many visits a host gets at a time. Default 1. It is always 1 where a
	// Crawl-delay is in force (DELAY-12).
	Concurrency int
	// MaxCrawlDelay is the longest Crawl-delay that the crawl waits for. A host that demands more
	// is suspended, never visited faster. Default 1 h.
	MaxCrawlDelay time.Duration
	// InitialBackoff is the rest after a first failure. It doubles with each further consecutive
	// failure up to MaxBackoff, and halves with each success. Defaults 5 s and 1 h.
	InitialBackoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest Retry-After that the crawl waits for. A host that demands more
	// is suspended, never visited sooner. Default 24 h.
	MaxRetryAfter time.Duration
	// VisitWindow holds the hours in which hosts are visited. Default: always.
	VisitWindow Window
	// HostOverrides replaces settings of single hosts, by decorum.Origin.Host.
	HostOverrides map[string]HostOverride
	// JitterSeed selects the random part of this crawl's back-off. The random part is a function of
	// JitterSeed, of the host or URL, and of the number of failures, so that a replayed crawl takes
	// the same course.
	JitterSeed uint64
	// JitterFunc returns a number in [0, 1) that spreads back-off. If it is nil, JitterSeed
	// determines the number.
	JitterFunc func() float64
}

// Validate returns an error if a field of the policy or of a HostOverride is out of range.
func (p Policy) Validate() error {
	switch {
	case p.Delay < NoDelay:
		return errors.New("delay must not be negative")
	case !(p.AdaptiveFactor <= 1000): // so written, it refuses NaN
		return errors.New("adaptive must not be more than 1000")
	case p.Concurrency < 0:
		return errors.New("concurrency must not be negative")
	case p.MaxCrawlDelay < 0, p.InitialBackoff < 0, p.MaxBackoff < 0, p.MaxRetryAfter < 0:
		return errors.New("durations must not be negative")
	}
	for host, o := range p.HostOverrides {
		// An override obeys the limits of the fields that it replaces.
		q := Policy{}
		overrideIfSet(&q.Delay, o.Delay)
		overrideIfSet(&q.AdaptiveFactor, o.AdaptiveFactor)
		overrideIfSet(&q.Concurrency, o.Concurrency)
		if err := q.Validate(); err != nil {
			return fmt.Errorf("%s: %w", host, err)
		}
	}
	return nil
}

// WithDefaults returns the policy with each zero field set to its default.
func (p Policy) WithDefaults() Policy {
	p.Delay = cmp.Or(p.Delay, time.Second)
	p.AdaptiveFactor = cmp.Or(p.AdaptiveFactor, 1)
	p.Concurrency = cmp.Or(p.Concurrency, 1)
	p.MaxCrawlDelay = cmp.Or(p.MaxCrawlDelay, time.Hour)
	p.InitialBackoff = cmp.Or(p.InitialBackoff, 5*time.Second)
	p.MaxBackoff = cmp.Or(p.MaxBackoff, time.Hour)
	p.MaxRetryAfter = cmp.Or(p.MaxRetryAfter, 24*time.Hour)
	return p
}

// A FinishedVisit describes one request to a host and its answer.
type FinishedVisit struct {
	Host                string        // as decorum.Origin.Host spells it
	Start, End          time.Time     // start of the request and end of its answer
	Status              int           // HTTP status; 0: no answer (refused, reset, timed out)
	RetryAfter          time.Duration // decorum.Response.RetryAfter, counted from End
	CrawlDelay          time.Duration // the Crawl-delay of robots.txt; 0: none
	ConsecutiveFailures int           // before this visit
}

// signalsOverload reports whether the result suggests a server in trouble (DELAY-13): no answer,
// 429, or 5xx. Other 4xx statuses do not suggest it (DELAY-14).
func (v FinishedVisit) signalsOverload() bool {
	return v.Status == 0 || v.Status == http.StatusTooManyRequests || v.Status >= 500
}

// A NextVisit says when, and how many at a time, visits to a host may begin after a visit.
type NextVisit struct {
	Due                 time.Time     // earliest start of the next visit
	Delay               time.Duration // time from the end of the visit to Due
	HostSlots           int           // concurrent visits that the host allows
	ConsecutiveFailures int           // including this visit; a success halves the back-off by subtracting one
}

// NextVisit returns the rest of the host after v. The rest begins at v.End, and is the longest of
// the policy's Delay, the Crawl-delay, the adaptive delay, Retry-After and back-off. A shorter
// Crawl-delay makes no visit earlier (DELAY-03).
func (p Policy) NextVisit(v FinishedVisit) NextVisit {
	p = p.WithDefaults()
	next := NextVisit{HostSlots: p.Concurrency, ConsecutiveFailures: max(v.ConsecutiveFailures-1, 0)}
	if v.signalsOverload() {
		next.ConsecutiveFailures = min(v.ConsecutiveFailures+1, p.failuresUntilMaxBackoff())
	}
	if v.CrawlDelay > 0 {
		next.HostSlots = 1
	}
	next.Delay = max(0, p.Delay, v.CrawlDelay, p.adaptiveDelay(v),
		min(v.RetryAfter, maxDelay), p.backoffDelay(v.Host, next.ConsecutiveFailures))
	next.Due = v.End.Add(next.Delay)
	return next
}

// maxDelay bounds the delay that a host can demand, so that sums of a time and a delay do not
// overflow.
const maxDelay = 365 * 24 * time.Hour

// adaptiveDelay returns AdaptiveFactor times the duration of v.
func (p Policy) adaptiveDelay(v FinishedVisit) time.Duration {
	return time.Duration(max(p.AdaptiveFactor, 0) * float64(v.End.Sub(v.Start)))
}

// backoffDelay returns the rest of a host or URL after consecutive failures: between 1 and 1¼ times
// InitialBackoff × 2^(failures-1), at most MaxBackoff.
func (p Policy) backoffDelay(key string, failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := backoff.Delay(p.InitialBackoff, p.MaxBackoff, failures)
	d += time.Duration(p.drawJitterFraction(key, failures) * float64(d) / 4)
	return min(d, p.MaxBackoff)
}

// drawJitterFraction returns a number in [0, 1) from JitterFunc, or from JitterSeed, key and
// failures.
func (p Policy) drawJitterFraction(key string, failures int) float64 {
	if p.JitterFunc != nil {
		return p.JitterFunc()
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	return rand.New(rand.NewPCG(p.JitterSeed^h.Sum64(), uint64(failures))).Float64()
}

// failuresUntilMaxBackoff returns after how many failures back-off reaches MaxBackoff. More
// failures are not counted: they would only delay a host that has recovered.
func (p Policy) failuresUntilMaxBackoff() int {
	n := 1
	for d := p.InitialBackoff; 0 < d && d < p.MaxBackoff; d *= 2 { // d may overflow
		n++
	}
	return n
}

// RetryDelay returns the least delay before another visit to the page at url after attempts failed
// visits to it.
func (p Policy) RetryDelay(url string, attempts int) time.Duration {
	return p.WithDefaults().backoffDelay(url, attempts)
}

// A HostOverride replaces settings of a Policy for one host. A nil field keeps the Policy's
// setting. What the host demands itself, by Crawl-delay, Retry-After or failures, still applies.
type HostOverride struct {
	Delay          *time.Duration // see Policy.Delay
	AdaptiveFactor *float64       // see Policy.AdaptiveFactor
	Concurrency    *int           // see Policy.Concurrency
	VisitWindow    *Window        // see Policy.VisitWindow
	Reason         string         // shown to people
	Expires        time.Time      // the override applies before Expires; zero: for good
}

// Expired reports whether the override has ended by now.
func (o HostOverride) Expired(now time.Time) bool {
	return !o.Expires.IsZero() && !now.Before(o.Expires)
}

// ForHost returns the policy for host at now: with the host's override, unless that has expired,
// and with defaults for zero fields.
func (p Policy) ForHost(host string, now time.Time) Policy {
	if o, ok := p.HostOverrides[host]; ok && !o.Expired(now) {
		overrideIfSet(&p.Delay, o.Delay)
		overrideIfSet(&p.AdaptiveFactor, o.AdaptiveFactor)
		overrideIfSet(&p.Concurrency, o.Concurrency)
		overrideIfSet(&p.VisitWindow, o.VisitWindow)
	}
	return p.WithDefaults()
}

// overrideIfSet sets field to *value unless value is nil.
func overrideIfSet[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
