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

// NoDelay as a Policy's Delay asks for no rest of its own between visits: for
// servers of one's own. Crawl-delay, Retry-After and back-off hold all the same.
const NoDelay time.Duration = -1

// A Policy is how polite to be. Its zero value is polite: each field says what
// zero means. There is no value that turns politeness off.
type Policy struct {
	// Delay is the rest between the end of one visit to a host and the start
	// of the next. Default 1 s.
	Delay time.Duration
	// AdaptiveFactor makes the rest at least so many times as long as the last visit
	// took. Default 1; negative: off.
	AdaptiveFactor float64
	// Concurrency is how many visits a host gets at a time. Default 1. Where a
	// Crawl-delay is in force it is always 1 (DELAY-12).
	Concurrency int
	// MaxCrawlDelay is the longest Crawl-delay the crawl waits for: a host that
	// asks for more is set aside, never visited faster. Default 1 h.
	MaxCrawlDelay time.Duration
	// InitialBackoff is the rest after a first failure; it doubles with each further
	// one in a row up to MaxBackoff, and halves with each success. Defaults
	// 5 s, 1 h.
	InitialBackoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest Retry-After the crawl waits for: a host that
	// asks for more is set aside, never visited sooner. Default 24 h.
	MaxRetryAfter time.Duration
	// VisitWindow is when hosts are visited. Default: always.
	VisitWindow Window
	// HostOverrides says otherwise of single hosts.
	HostOverrides map[string]HostOverride
	// JitterSeed makes the back-off of this crawl another than that of others. Chance in
	// it is the same for the same JitterSeed, host or URL, and number of failures, so that
	// a crawl which is played again goes as it went.
	JitterSeed uint64
	// JitterFunc returns a number in [0, 1) that spreads back-off; nil: chance, by JitterSeed.
	JitterFunc func() float64
}

// Validate reports a policy that makes no sense.
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

// WithDefaults returns the policy with each zero field set to what it means.
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

// A FinishedVisit is what one request to a host was like.
type FinishedVisit struct {
	Host                string        // as decorum.Origin.Host spells it
	Start, End          time.Time     // of the request, and of its answer
	Status              int           // 0: no answer came (refused, reset, timed out)
	RetryAfter          time.Duration // of the answer, counted from End: decorum.Response.RetryAfter
	CrawlDelay          time.Duration // what robots.txt asks for; 0: nothing
	ConsecutiveFailures int           // failures in a row before this visit
}

// signalsOverload reports whether the answer is a sign of a server in trouble
// (DELAY-13): none at all, 429, or 5xx. Other 4xx say nothing of it (DELAY-14).
func (v FinishedVisit) signalsOverload() bool {
	return v.Status == 0 || v.Status == http.StatusTooManyRequests || v.Status >= 500
}

// A NextVisit is what a host is owed after a visit.
type NextVisit struct {
	Due                 time.Time     // no visit begins before
	Delay               time.Duration // Due less the end of the visit
	HostSlots           int           // visits at a time
	ConsecutiveFailures int           // failures in a row, this visit included
}

// NextVisit returns the rest that v earns the host: from the end of the visit, the
// longest of the policy's delay, Crawl-delay, adaptive delay, Retry-After and
// back-off. A shorter Crawl-delay speeds nothing up (DELAY-03).
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

// maxRequiredDelay bounds what a host can ask for, so that nobody's sums overflow.
const maxDelay = 365 * 24 * time.Hour

// adaptiveDelay returns the rest that a slow answer asks for.
func (p Policy) adaptiveDelay(v FinishedVisit) time.Duration {
	return time.Duration(max(p.AdaptiveFactor, 0) * float64(v.End.Sub(v.Start)))
}

// backoffDelay returns the rest of a host, or URL, after so many strikes: between once
// and one and a quarter times InitialBackoff × 2^(strikes-1), at most MaxBackoff.
func (p Policy) backoffDelay(key string, failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := backoff.Delay(p.InitialBackoff, p.MaxBackoff, failures)
	d += time.Duration(p.drawJitterFraction(key, failures) * float64(d) / 4)
	return min(d, p.MaxBackoff)
}

// drawJitterFraction returns a number in [0, 1).
func (p Policy) drawJitterFraction(key string, failures int) float64 {
	if p.JitterFunc != nil {
		return p.JitterFunc()
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	return rand.New(rand.NewPCG(p.JitterSeed^h.Sum64(), uint64(failures))).Float64()
}

// failuresUntilMaxBackoff returns after how many strikes back-off is as long as it gets. More
// are not counted: they would only keep a host that is well again waiting.
func (p Policy) failuresUntilMaxBackoff() int {
	n := 1
	for d := p.InitialBackoff; 0 < d && d < p.MaxBackoff; d *= 2 { // it may overflow
		n++
	}
	return n
}

// RetryDelay returns when the page at url, which failed, is asked for again, at the
// earliest, after so many failed visits of its own.
func (p Policy) RetryDelay(url string, attempts int) time.Duration {
	return p.WithDefaults().backoffDelay(url, attempts)
}

// A HostOverride is what a Policy says otherwise of one host. What is nil is as
// for all hosts. What a host asks for itself, by Crawl-delay, Retry-After or
// failing, holds all the same.
type HostOverride struct {
	Delay          *time.Duration // as Policy.Delay
	AdaptiveFactor *float64       // as Policy.AdaptiveFactor
	Concurrency    *int           // as Policy.Concurrency
	VisitWindow    *Window        // as Policy.VisitWindow
	Reason         string         // for people
	Expires        time.Time      // it holds before; zero: for good
}

// Expired reports whether the override no longer holds at now.
func (o HostOverride) Expired(now time.Time) bool {
	return !o.Expires.IsZero() && !now.Before(o.Expires)
}

// ForHost returns the policy for host at now: with its HostOverride, if there is one
// that has not expired. Zero fields are set to what they mean.
func (p Policy) ForHost(host string, now time.Time) Policy {
	if o, ok := p.HostOverrides[host]; ok && !o.Expired(now) {
		overrideIfSet(&p.Delay, o.Delay)
		overrideIfSet(&p.AdaptiveFactor, o.AdaptiveFactor)
		overrideIfSet(&p.Concurrency, o.Concurrency)
		overrideIfSet(&p.VisitWindow, o.VisitWindow)
	}
	return p.WithDefaults()
}

// overrideIfSet gives field the value, if there is one.
func overrideIfSet[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
