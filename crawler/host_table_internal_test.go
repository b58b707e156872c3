package crawler

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// leaseTwo returns two leases of a host that may have two visits at a time.
func leaseTwo(t *testing.T, p *partsFixture) []storage.Lease {
	t.Helper()
	l := p.leaseURL(t, "http://a.test/")
	p.ack(t, l, leaseOutcome{outcome: storage.Done, host: &storage.HostState{Slots: 2}})
	p.discover(t, storage.Entry{URL: mustParseURL(t, "http://a.test/1")},
		storage.Entry{URL: mustParseURL(t, "http://a.test/2")})
	leases := p.leaseNow(t, 2)
	if len(leases) != 2 {
		t.Fatalf("%d leases, want 2", len(leases))
	}
	return leases
}

// TestHostTableKeepsTheNewestState: two visits to a host end together, and the first of them is
// acked last. The store has the state after the second, and both are counted.
func TestHostTableKeepsTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		cl := p.learnRobots(t, mustParseURL(t, "http://a.test/"), "")
		table, leases := p.newHostTable(), leaseTwo(t, p)
		for _, l := range leases {
			table.acquireHost(l)
		}
		acks := make([]storage.Ack, 2)
		for i, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
			header := http.Header{}
			if status != http.StatusOK {
				header.Set("Retry-After", "600")
			}
			host, _, err := table.updateHostAfterVisit(t.Context(),
				visitOf(leases[i], p.check(t, leases[i].URL), status, header, "hello"))
			if err != nil {
				t.Fatal(err)
			}
			acks[i] = newAck(leases[i], leaseOutcome{outcome: storage.Done, host: host})
		}
		if first, second := acks[0].HostState, acks[1].HostState; first.ConsecutiveFailures != 0 ||
			second.ConsecutiveFailures != 1 {
			t.Fatalf("the visits left %+v and %+v", first, second)
		}
		for _, i := range []int{1, 0} {
			if err := table.ackLease(t.Context(), &acks[i]); err != nil {
				t.Fatal(err)
			}
			table.releaseHost(leases[i])
		}
		stored := p.originInfo(t, cl.URL()).HostState
		if wait := time.Until(stored.Due); stored.ConsecutiveFailures != 1 || wait != 10*time.Minute ||
			stored.LostVisitDelay != wait {
			t.Errorf("the store has %+v, want what the second visit left", stored)
		}
		if s := DecodeHostStats(stored.EncodedStats); s.Requests != 2 || s.Pages != 2 ||
			s.FailedRequests != 1 || s.Bytes != 10 {
			t.Errorf("the store has the counts %+v, want those of both visits", s)
		}
	})
}

// TestHostTableCountsOn: counts continue from the store or the table, if these have more than the
// lease.
func TestHostTableCountsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		cl := p.learnRobots(t, mustParseURL(t, "http://a.test/"), "")
		visit := func(table *hostTable, l storage.Lease) {
			table.acquireHost(l)
			host, _, err := table.updateHostAfterVisit(t.Context(), visitOf(l, cl, http.StatusOK, nil, ""))
			if err != nil {
				t.Fatal(err)
			}
			ack := newAck(l, leaseOutcome{outcome: storage.Requeue, host: host})
			if err := table.ackLease(t.Context(), &ack); err != nil {
				t.Fatal(err)
			}
			table.releaseHost(l)
		}
		requests := func() int64 {
			return DecodeHostStats(p.originInfo(t, cl.URL()).HostState.EncodedStats).Requests
		}
		table, l := p.newHostTable(), p.leaseURL(t, "http://a.test/")
		early := l // a lease made before the visit
		visit(table, l)
		if n := requests(); n != 1 {
			t.Errorf("%d requests after the first", n)
		}
		lease := func() storage.Lease {
			time.Sleep(time.Hour) // until the host is due
			return p.leaseOne(t)
		}
		l = lease()
		l.HostState = early.HostState
		visit(table, l)
		if n := requests(); n != 2 {
			t.Errorf("%d requests after the second, whose lease knows of none", n)
		}
		visit(p.newHostTable(), lease())
		if n := requests(); n != 3 {
			t.Errorf("%d requests after the third, which another process made", n)
		}
		visit(table, lease())
		if n := requests(); n != 4 {
			t.Errorf("%d requests after the fourth, which the first process made again", n)
		}
	})
}

// TestHostTableKnowsDelaysOfOtherOrigins: the delay of one origin of a host applies after a visit
// to another, also in a table that was made after the delay was learnt.
func TestHostTableKnowsDelaysOfOtherOrigins(t *testing.T) {
	for learnt, want := range map[string]time.Duration{
		"http://a.test/": 30 * time.Second, "http://a.test:8080/": 30 * time.Second, "http://b.test/": time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPartsFixture(t)
			p.learnRobots(t, mustParseURL(t, learnt), "User-agent: *\nCrawl-delay: 30\n")
			secure := p.learnRobots(t, mustParseURL(t, "https://a.test/"), "")
			table := p.newHostTable()
			origin := mustParseURL(t, learnt).Origin()
			if d, _, err := table.crawlDelays.hostDelayAndNextAllowedTime(t.Context(), origin,
				time.Now()); d != 30*time.Second || err != nil {
				t.Errorf("%s asks for %v (%v)", learnt, d, err)
			}
			l := p.leaseURL(t, "https://a.test/")
			for _, ms := range []*hostTable{table, p.newHostTable()} {
				ms.acquireHost(l)
				host, _, err := ms.updateHostAfterVisit(t.Context(), visitOf(l, secure, http.StatusOK, nil, ""))
				if err != nil || host.LostVisitDelay != want {
					t.Errorf("%s asks for 30 s: after a visit to https://a.test the host rests %v (%v), want %v",
						learnt, host.LostVisitDelay, err, want)
				}
				ms.releaseHost(l)
			}
		})
	}
}

// TestHostTableTakesHealthOfSlowClock: a visit of a process whose clock is behind leaves LastEnd unchanged. The
// health that it stores counts all the same, because it follows from one request more.
func TestHostTableTakesHealthOfSlowClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		table, leases, end := p.newHostTable(), leaseTwo(t, p), time.Now().Add(time.Minute)
		for i, l := range leases {
			s := HostStats{HostTraffic: HostTraffic{Requests: int64(i + 1)}, LastEnd: end}
			s.Health.PagesInRow = i + 1
			l.HostState.EncodedStats = s.encode()
			table.acquireHost(l)
			if got := table.entryOf(l).Health.PagesInRow; got != i+1 {
				t.Errorf("after %d requests, %d pages in a row have failed, want %d", i+1, got, i+1)
			}
			table.releaseHost(l)
		}
	})
}

// TestHostTableTakesNewerHealth: the health in a lease is taken if it follows from a later visit, also while
// another visit of this process is under way and whatever the counts; an older one is not.
func TestHostTableTakesNewerHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		table, leases := p.newHostTable(), leaseTwo(t, p)
		stateOf := func(end time.Time, learned time.Duration, requests int64) []byte {
			s := HostStats{HostTraffic: HostTraffic{Requests: requests}, LastEnd: end}
			s.Health.LearnedPace = politeness.LearnedPace{Delay: learned, LastAnswer: end}
			return s.encode()
		}
		for i, tt := range []struct {
			end      time.Duration
			learned  time.Duration
			requests int64
			want     time.Duration
		}{{0, time.Second, 9, time.Second}, {time.Minute, 3 * time.Second, 5, 3 * time.Second},
			{time.Second, 2 * time.Second, 11, 3 * time.Second}} {
			l := leases[i%2]
			l.HostState.EncodedStats = stateOf(time.Now().Add(tt.end), tt.learned, tt.requests)
			table.acquireHost(l)
			if got := table.learnedPaceOf(l).Delay; got != tt.want {
				t.Errorf("lease %d: the learned delay is %v, want %v", i, got, tt.want)
			}
		}
	})
}
