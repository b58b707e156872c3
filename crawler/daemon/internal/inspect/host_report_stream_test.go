package inspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// inspectorOfHosts returns an Inspector of a crawl of n hosts with URLs in all states. Every tenth
// host has two origins.
func inspectorOfHosts(t testing.TB, n int) *Inspector {
	t.Helper()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "frontier.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		for _, scheme := range []string{"http", "https"}[:1+(i%10+1)/10] {
			u, err := decorum.ParseURL(fmt.Sprintf("%s://h%d.example/%d", scheme, i, i%7))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Add(t.Context(), []storage.Entry{{URL: u, Source: storage.SourceLink}}, 0); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				until := now.Add(time.Duration(i) * time.Minute)
				if err := store.Hold(t.Context(), u.Origin(), until, i%2 == 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	leases, _, err := store.Lease(t.Context(), now, time.Hour, n/4)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range leases {
		outcome := []storage.AckOutcome{storage.Done, storage.RetryAt, storage.RevisitAt, storage.Park}[i%4]
		err := store.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: outcome, NotBefore: now.Add(time.Hour),
			HostState: &storage.HostState{Due: now.Add(time.Duration(i) * time.Second), LostVisitDelay: time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	p := project.Default()
	gateConfig, err := p.GateConfig()
	if err != nil {
		t.Fatal(err)
	}
	return &Inspector{Project: p, FrontierStore: store, Gate: gate.New(gateConfig, memory.New(memory.Config{})),
		AsOf:  now,
		Scope: func() *frontier.Scope { return nil }}
}

// hostReportsInMemory returns the reports on all hosts of a crawl, and calls also for each origin.
func hostReportsInMemory(t *testing.T, q *Inspector, also func(*storage.OriginInfo)) map[string]*HostReport {
	t.Helper()
	hosts := map[string]*HostReport{}
	err := q.FrontierStore.Origins(t.Context(), func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		if hosts[name] == nil {
			h := q.newHostReport(name, &o.HostState)
			hosts[name] = h
		}
		hosts[name].addOrigin(&o, q.AsOf)
		also(&o)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		q.completeHostReport(h)
	}
	return hosts
}

// reportInMemory returns the report of a crawl, built with all hosts in memory.
func reportInMemory(t *testing.T, q *Inspector, limit int) *api.CrawlReport {
	t.Helper()
	var parked []decorum.Origin
	maxDelay := api.Milliseconds(q.Project.Politeness.MaxCrawlDelay)
	r := &api.CrawlReport{AsOf: q.AsOf.UTC(), HostsByState: map[string]int{}, CrawlDelayLimit: maxDelay}
	hosts := hostReportsInMemory(t, q, func(o *storage.OriginInfo) {
		r.OriginCount++
		if o.ParkedURLs > 0 {
			parked = append(parked, o.Origin)
		}
	})
	var err error
	for _, o := range parked {
		err = errors.Join(err, q.countParkedURLsByReason(t.Context(), o, hosts[o.Host()]))
	}
	total := RefusalTally{}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		recalculateCoverage(&h.HostTotals)
		h.ParkedByRule = h.parkedURLTally.Sorted()
		total.merge(h.ParkedByRule)
		r.HostCount++
		r.HostsByState[h.State]++
		r.LargestDelayShortfall = max(r.LargestDelayShortfall, h.LargestDelayShortfall)
		addHostTotals(&r.HostTotals, &h.HostTotals)
		r.Hosts = append(r.Hosts, &h.Host)
		err = errors.Join(err, q.SetHostHoldReason(t.Context(), h))
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(r.Hosts, func(a, b *api.Host) int {
		return cmp.Or(attentionSortKey(a).compare(attentionSortKey(b)), strings.Compare(a.Host, b.Host))
	})
	r.ParkedByRule = total.Sorted()
	if limit > 0 {
		r.Hosts, r.ParkedByRule = r.Hosts[:min(limit, len(r.Hosts))], r.ParkedByRule[:min(limit, len(r.ParkedByRule))]
	}
	return r
}

// TestStreamedReportIsTheSame: a report that reads hosts again while it is written has the same
// bytes as a report with all hosts in memory.
func TestStreamedReportIsTheSame(t *testing.T) {
	q := inspectorOfHosts(t, 1000)
	for _, limit := range []int{0, 1, 20, 500, 5000} {
		want := reportInMemory(t, q, limit)
		if limit == 0 && (want.ParkedURLs == 0 || len(want.HostsByState) < 4 || want.OriginCount == want.HostCount) {
			t.Fatalf("the crawl has %d parked URLs, hosts %v, %d origins: too little for this test",
				want.ParkedURLs, want.HostsByState, want.OriginCount)
		}
		for _, maxInMemory := range []int{0, 7, 1000} {
			s, err := q.streamedReport(t.Context(), "", limit, maxInMemory)
			if err != nil {
				t.Fatal(err)
			}
			var got, same, lines bytes.Buffer
			err = errors.Join(s.WriteJSON(&got), jsonline.WriteIndented(&same, want), s.WriteJSONLines(&lines))
			if err != nil || !bytes.Equal(got.Bytes(), same.Bytes()) {
				t.Errorf("limit %d, %d in memory: %v: streamed %d bytes, want these %d bytes", limit, maxInMemory,
					err, got.Len(), same.Len())
			}
			checkSameLines(t, want, &lines)
		}
	}
}

// checkSameLines checks the lines of a report: first the totals, then the hosts in order.
func checkSameLines(t *testing.T, want *api.CrawlReport, lines *bytes.Buffer) {
	t.Helper()
	d := json.NewDecoder(lines)
	var totals api.CrawlReport
	if err := d.Decode(&totals); err != nil || totals.HostCount != want.HostCount || totals.Hosts != nil {
		t.Errorf("totals of %d hosts, and %d: %v", totals.HostCount, len(totals.Hosts), err)
	}
	for i := range want.Hosts {
		var h api.Host
		if err := d.Decode(&h); err != nil || h.Host != want.Hosts[i].Host || h.KnownURLs != want.Hosts[i].KnownURLs {
			w := want.Hosts[i]
			t.Fatalf("host %d is %s (%d URLs, %v), want %s (%d)", i, h.Host, h.KnownURLs, err, w.Host, w.KnownURLs)
		}
	}
	if d.More() {
		t.Error("the report has more lines than hosts")
	}
}

// TestStreamedStatsAreTheSame: the numbers of the frontier are the totals of the report.
func TestStreamedStatsAreTheSame(t *testing.T) {
	q := inspectorOfHosts(t, 1000)
	want := reportInMemory(t, q, 0)
	s, err := q.FrontierStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := []int{s.HostCount, s.OriginCount, s.QueuedURLs, s.AwaitingRevisit, s.ParkedURLs, s.SeenURLs}
	sums := []int{want.HostCount, want.OriginCount, want.QueuedURLs, want.AwaitingRevisit,
		want.ParkedURLs, want.KnownURLs}
	if !slices.Equal(got, sums) || !maps.Equal(s.HostsByState, want.HostsByState) {
		t.Errorf("stats %v %v, want %v %v", got, s.HostsByState, sums, want.HostsByState)
	}
}
