package politeness

// A DelayReason says which of its causes made the delay of a NextVisit as long as it is.
type DelayReason string

// The reasons for a delay.
const (
	ConfiguredDelay DelayReason = "configured delay" // Policy.Delay, or that of a HostOverride
	RobotsDelay     DelayReason = "Crawl-delay"      // also a Request-rate of robots.txt
	LearnedDelay    DelayReason = "learned delay"    // a pace that the host has accepted: LearnedPace
	AdaptiveDelay   DelayReason = "adaptive delay"   // the duration of the visit
	RetryAfterDelay DelayReason = "Retry-After"
	BackoffDelay    DelayReason = "back-off" // failures
)

// DelayReason returns why next, the result of NextVisit for v, has its delay; "" for a delay of 0. Of several
// reasons for the same delay it returns the first in the order of the constants.
func (p Policy) DelayReason(v FinishedVisit, next NextVisit) DelayReason {
	p = p.WithDefaults()
	switch next.Delay {
	case 0:
		return ""
	case p.Delay:
		return ConfiguredDelay
	case v.CrawlDelay:
		return RobotsDelay
	case next.Health.LearnedPace.Delay:
		return LearnedDelay
	case p.adaptiveDelay(v):
		return AdaptiveDelay
	case min(v.RetryAfter, maxDelay):
		return RetryAfterDelay
	}
	return BackoffDelay
}
