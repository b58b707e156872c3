package politeness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

// BenchmarkReserve measures the Limiter's part of a visit: a permit, its return, and the host's
// rest. One crawl visits 1,000 hosts in turn.
func BenchmarkReserve(b *testing.B) {
	for _, cfg := range []struct {
		name   string
		limits politeness.LimiterConfig
	}{
		{"hosts", politeness.LimiterConfig{}},
		{"addresses", politeness.LimiterConfig{IPConcurrency: 2}},
	} {
		b.Run(cfg.name, func(b *testing.B) {
			l, now := politeness.NewLimiter(cfg.limits), noon
			hosts := make([]string, 1000)
			for i := range hosts {
				hosts[i] = fmt.Sprintf("h%d.test", i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				host := hosts[i%len(hosts)]
				p, d := l.Reserve(now, host, politeness.PermitRequest{NotBefore: now})
				err := d.Err()
				if err == nil {
					err = p.ClaimServerAddr(now, sharedAddr)
				}
				if err != nil {
					b.Fatal(err)
				}
				l.ReleaseAfterTransfer(p, now)
				l.SetNextVisitAndCountBytes(host,
					politeness.NextVisit{Due: now.Add(time.Second), Delay: time.Second, HostSlots: 1}, 0)
				now = now.Add(time.Millisecond)
			}
		})
	}
}
