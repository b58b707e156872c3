package supervisor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A subscriber receives the events of its project, and how many it missed. A subscriber whose context
// ends is removed, even if it never iterated.
func TestEventBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h eventBroker
		ctx, cancel := context.WithCancel(t.Context())
		a, all, never := h.subscribe(ctx, "a"), h.subscribe(ctx, ""), h.subscribe(ctx, "")
		_ = never
		publish := func(n int, project string) {
			for range n {
				h.publish(api.Event{Type: "visit", Project: project})
			}
		}
		publish(maxPendingEvents, "a")
		publish(7, "b")
		h.publish(api.Event{Type: "brake", Host: "x.example"})
		checkMissed := func(events func(func(api.Event) bool), want int) {
			t.Helper()
			received := 0
			for e := range events {
				if e.Type != "missed" {
					received++
					continue
				}
				if received != maxPendingEvents || e.MissedEvents != want {
					t.Errorf("received %d, missed %d; want %d and %d", received, e.MissedEvents, maxPendingEvents, want)
				}
				break
			}
		}
		checkMissed(a, 1)
		checkMissed(all, 8)
		if n := h.subscriberCount.Load(); n != 1 {
			t.Errorf("%d subscribers, want the one that has not iterated", n)
		}
		cancel()
		synctest.Wait()
		if h.hasSubscribers() || len(h.subscribers) != 0 {
			t.Errorf("%d subscribers after all have ended", len(h.subscribers))
		}
	})
}

// A project's throughput is stored per second for ten minutes, and per minute for a day.
func TestThroughput(t *testing.T) {
	var tp throughputHistory
	begin := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	const seconds = 25 * 60 * 60
	for i := range seconds + 1 {
		s := api.ProjectStats{Pages: int64(2 * i), Errors: int64(i / 60),
			HostTraffic: api.HostTraffic{Bytes: int64(100 * i)}}
		tp.addSnapshot(statsSnapshot{begin.Add(time.Duration(i) * time.Second), s}, i)
	}
	fine, coarse := tp.perSecondSamples, tp.perMinuteSamples
	last := begin.Add(seconds * time.Second)
	if len(fine) != maxSecondSamples || fine[len(fine)-1].At != last ||
		fine[0].At != last.Add(-(maxSecondSamples-1)*time.Second) {
		t.Errorf("%d samples, from %v to %v", len(fine), fine[0].At, fine[len(fine)-1].At)
	}
	if len(coarse) != maxMinuteSamples || coarse[0].PagesPerSecond != 2 || coarse[0].BytesPerSecond != 100 ||
		coarse[1].At.Sub(coarse[0].At) != time.Minute {
		t.Errorf("%d samples, the first %+v", len(coarse), coarse[0])
	}
	if !slices.IsSortedFunc(coarse, func(x, y api.ThroughputSample) int { return x.At.Compare(y.At) }) {
		t.Error("samples are not in order")
	}
	if r := tp.recentThroughput(); r.PagesPerSecond < 1.99 || r.PagesPerSecond > 2.01 ||
		r.QueuedURLs != seconds || r.At != last {
		t.Errorf("of the last seconds: %+v", r)
	}
}
