package politeness

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
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
	// InitialBackoff is the rest after a first failure of a host. Each further consecutive failure
	// multiplies it by BackoffFactor, up to MaxBackoff, and each success takes one such step back.
	// answerScopes says which answers are failures of the host. Defaults 5 s, 2 and 1 h;
	// BackoffFactor is at least 1 and at most 100.
	InitialBackoff, MaxBackoff time.Duration
	BackoffFactor              float64
	// MaxLearnedDelay is the longest delay that LearnedPace may reach. Default 1 min; negative:
	// no pace is learned.
	MaxLearnedDelay time.Duration
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
	case p.BackoffFactor != 0 && !(1 <= p.BackoffFactor && p.BackoffFactor <= 100):
		return errors.New("the back-off factor must be between 1 and 100")
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
	p.BackoffFactor = cmp.Or(p.BackoffFactor, 2)
	p.MaxLearnedDelay = cmp.Or(p.MaxLearnedDelay, time.Minute)
	p.MaxRetryAfter = cmp.Or(p.MaxRetryAfter, 24*time.Hour)
	return p
}

// A FinishedVisit describes one request to a host and its answer.
type FinishedVisit struct {
	Host             string        // as decorum.Origin.Host spells it
	Page             string        // the requested URL
	PageFailedBefore bool          // the last visit to the page failed, too
	Start, End       time.Time     // start of the request and end of its answer
	Status           int           // HTTP status; 0: no answer (refused, reset, timed out)
	RetryAfter       time.Duration // decorum.Response.RetryAfter, counted from End
	CrawlDelay       time.Duration // the Crawl-delay of robots.txt; 0: none
	Inconclusive     bool          // the visit says nothing about the host, whose health stays as it is
	Health           HostHealth    // before this visit
}

// A NextVisit says when, and how many at a time, visits to a host may begin after a visit.
type NextVisit struct {
	Due       time.Time     // earliest start of the next visit
	Delay     time.Duration // time from the end of the visit to Due
	HostSlots int           // concurrent visits that the host allows
	Health    HostHealth    // including this visit
}

// NextVisit returns the rest of the host after v. The rest begins at v.End, and is the longest of
// the policy's Delay, the Crawl-delay, the adaptive delay, Retry-After, the learned pace and
// back-off. A shorter Crawl-delay makes no visit earlier (DELAY-03). While a learned pace is in
// force, the host gets one visit at a time.
func (p Policy) NextVisit(v FinishedVisit) NextVisit {
	p = p.WithDefaults()
	next := NextVisit{HostSlots: p.Concurrency, Health: v.Health}
	required := max(0, p.Delay, v.CrawlDelay)
	if !v.Inconclusive {
		next.Health = v.Health.afterVisit(v, p.failuresUntilMaxBackoff())
		next.Health.LearnedPace = v.Health.LearnedPace.afterVisit(v, required, p.MaxLearnedDelay)
	}
	learned := next.Health.LearnedPace.AtMost(p.MaxLearnedDelay).Delay
	if v.CrawlDelay > 0 || learned > 0 {
		next.HostSlots = 1
	}
	next.Delay = max(required, learned, p.adaptiveDelay(v), min(v.RetryAfter, maxDelay),
		p.backoffDelay(v.Host, next.Health.ConsecutiveFailures))
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
// InitialBackoff × BackoffFactor^(failures-1), at most MaxBackoff.
func (p Policy) backoffDelay(key string, failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := backoff.DelayByFactor(p.InitialBackoff, p.MaxBackoff, p.BackoffFactor, failures)
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

// maxBackoffSteps bounds the steps of a back-off whose factor is close to 1.
const maxBackoffSteps = 100

// failuresUntilMaxBackoff returns after how many failures back-off reaches MaxBackoff. More
// failures are not counted: they would only delay a host that has recovered.
func (p Policy) failuresUntilMaxBackoff() int {
	n := 1
	for n < maxBackoffSteps && p.BackoffFactor > 1 &&
		backoff.DelayByFactor(p.InitialBackoff, p.MaxBackoff, p.BackoffFactor, n) < p.MaxBackoff {
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
