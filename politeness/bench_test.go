package politeness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

// BenchmarkRequest is the hallway's part of one visit: a permit, its end, and the
// rest that it earned, of a crawl that is alone and goes round 1,000 hosts.
func BenchmarkRequest(b *testing.B) {
	for _, cfg := range []struct {
		name   string
		limits politeness.LimitsConfig
	}{
		{"hosts", politeness.LimitsConfig{}},
		{"addresses", politeness.LimitsConfig{IPConcurrency: 2}},
	} {
		b.Run(cfg.name, func(b *testing.B) {
			l, now := politeness.NewLimits(cfg.limits), noon
			hosts := make([]string, 1000)
			for i := range hosts {
				hosts[i] = fmt.Sprintf("h%d.test", i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				host := hosts[i%len(hosts)]
				p, err := l.Request(now, host, politeness.Wish{NotBefore: now})
				if err == nil {
					err = p.Bind(now, shared)
				}
				if err != nil {
					b.Fatal(err)
				}
				l.Leave(p, now)
				l.Ended(host, politeness.Rest{Due: now.Add(time.Second), Gap: time.Second, Slots: 1}, 0)
				now = now.Add(time.Millisecond)
			}
		})
	}
}
