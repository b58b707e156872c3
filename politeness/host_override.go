package politeness

import "time"

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
		setIfNotNil(&p.Delay, o.Delay)
		setIfNotNil(&p.AdaptiveFactor, o.AdaptiveFactor)
		setIfNotNil(&p.Concurrency, o.Concurrency)
		setIfNotNil(&p.VisitWindow, o.VisitWindow)
	}
	return p.WithDefaults()
}

// setIfNotNil gives field the value, if there is one.
func setIfNotNil[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
