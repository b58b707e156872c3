package engine

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

// A crawl waits at most as long as its slowest host can rest.
func TestMaxPolitenessDelay(t *testing.T) {
	policy := politeness.Policy{Delay: 3 * time.Second}
	if got := maxPolitenessDelay(policy); got != 24*time.Hour {
		t.Errorf("the crawl waits for %v at most, want the day that a Retry-After may ask for", got)
	}
	policy.HostOverrides = map[string]politeness.HostOverride{"slow.example": {Delay: new(48 * time.Hour)}}
	if got := maxPolitenessDelay(policy); got != 48*time.Hour {
		t.Errorf("the crawl waits for %v at most, want the two days of its slowest host", got)
	}
}
