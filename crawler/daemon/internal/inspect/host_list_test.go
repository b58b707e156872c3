package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// hostsPerPage is the number of hosts on a page in these tests.
const hostsPerPage = 1000

// encodedHostStats returns the statistics of a host after ten visits.
func encodedHostStats(tb testing.TB) []byte {
	stats := []byte{1}
	for _, n := range []uint64{9, 9, 10, 1, 1 << 20, 200, uint64(time.Now().UnixNano()), 4, 127, 0, 0, 1,
		5e9, 0, 1e9, 1e9, 0, 40, 3, 1, 7, 1} {
		stats = binary.AppendUvarint(stats, n)
	}
	if m := crawler.DecodeHostStats(stats); m.Requests != 10 || m.Gaps.Count() != 9 {
		tb.Fatalf("the decoded statistics are %+v", m)
	}
	return stats
}

// inspectorOfCrawl returns an Inspector of a crawl with so many hosts.
func inspectorOfCrawl(tb testing.TB, hosts int) *Inspector {
	ctx, dir := context.Background(), tb.TempDir()
	open := func(name string) datadir.StoreInspectorImporter {
		s, err := datadir.OpenBoltStore(filepath.Join(dir, name), bolt.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { s.Close() })
		return s
	}
	q := &Inspector{Project: project.Default(), FrontierStore: open(datadir.StoreFile), AsOf: time.Now(),
		Scope: func() *frontier.Scope { return frontier.NewScope(frontier.ScopeConfig{}, nil) }}
	q.Gate = gate.New(gate.Config{}, open(datadir.RobotsFile))
	var entries []storage.Entry
	for i := range hosts {
		u, err := decorum.ParseURL(fmt.Sprintf("https://www.host-%d.example/", i))
		if err != nil {
			tb.Fatal(err)
		}
		entries = append(entries, storage.Entry{URL: u})
		c, err := q.Gate.Check(ctx, q.AsOf, u)
		if err != nil {
			tb.Fatal(err)
		}
		answer := &decorum.Response{URL: c.URL(), Status: http.StatusOK,
			Body: []byte("User-agent: *\nDisallow: /search\nDisallow: /cart\n")}
		if _, err := q.Gate.RecordFetch(ctx, q.AsOf.Add(-time.Duration(i)*time.Millisecond),
			c, answer, nil); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := q.FrontierStore.Add(ctx, entries, 0); err != nil {
		tb.Fatal(err)
	}
	stats := encodedHostStats(tb)
	for done := 0; done < hosts; {
		leases, _, err := q.FrontierStore.Lease(ctx, q.AsOf, time.Hour, 1000)
		if err != nil || len(leases) == 0 {
			tb.Fatalf("%d leases, %v", len(leases), err)
		}
		acks := make([]storage.Ack, len(leases))
		for i, l := range leases {
			acks[i] = storage.Ack{Lease: l, Outcome: storage.Requeue,
				HostState: &storage.HostState{Due: q.AsOf.Add(time.Duration(done+i) * time.Millisecond),
					LostVisitDelay: time.Second, Slots: 1, EncodedStats: stats}}
		}
		if err := q.FrontierStore.Ack(ctx, acks); err != nil {
			tb.Fatal(err)
		}
		done += len(leases)
	}
	if err := q.FrontierStore.Flush(ctx); err != nil {
		tb.Fatal(err)
	}
	return q
}

// BenchmarkHosts measures pages of the list of 100,000 hosts: the first, for which the list is
// built, and later ones.
func BenchmarkHosts(b *testing.B) {
	q := inspectorOfCrawl(b, 100_000)
	ctx := context.Background()
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			r, err := q.NewHostList(ctx)
			if err == nil {
				_, _, err = r.Page(ctx, q, api.HostQuery{Limit: 50})
			}
			if err != nil || len(r.hosts) != 100_000 {
				b.Fatalf("%d hosts, %v", len(r.hosts), err)
			}
		}
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := q.NewHostList(ctx)
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
	})
	for name, want := range map[string]api.HostQuery{
		"page":    {Offset: 50_000, Limit: 50},
		"sorted":  {Sort: "due", Offset: 50_000, Limit: 50},
		"search":  {Search: "-777", Limit: 50},
		"backing": {Sort: sortByRobotsAge, Descending: true, Limit: 50},
	} {
		b.Run(name, func(b *testing.B) {
			if _, _, err := r.Page(ctx, q, want); err != nil { // sorts
				b.Fatal(err)
			}
			for b.Loop() {
				if hosts, _, err := r.Page(ctx, q, want); err != nil || len(hosts) != 50 {
					b.Fatalf("%d hosts, %v", len(hosts), err)
				}
			}
		})
	}
	b.Run("ages", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.robotsAges(ctx, q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if h, err := q.lookUpHost(ctx, "www.host-77777.example", false); err != nil || h == nil {
				b.Fatal(err)
			}
		}
	})
}

// TestHostListReadsHosts: the hosts on a page, which are read again, are those that were sorted,
// with all of their origins, for every sort key and both directions.
func TestHostListReadsHosts(t *testing.T) {
	const hosts = MaxHostsInMemory + 500
	q := inspectorOfHosts(t, hosts)
	want := hostReportsInMemory(t, q, func(*storage.OriginInfo) {})
	r, err := q.NewHostList(t.Context())
	whole, ofSeveralOrigins := 0, 0
	for _, h := range r.hosts {
		switch {
		case h.details == nil:
		case h.details.report != nil:
			whole++
		default:
			ofSeveralOrigins++
		}
	}
	if err != nil || len(r.hosts) != hosts || whole != MaxHostsInMemory || ofSeveralOrigins == 0 {
		t.Fatalf("%d hosts, %d of them whole, %d of several origins: %v", len(r.hosts), whole, ofSeveralOrigins, err)
	}
	for sort := range HostSortKeys {
		for _, descending := range []bool{false, true} {
			seen := map[string]bool{}
			for offset := 0; offset < hosts; offset += hostsPerPage {
				page, total, err := r.Page(t.Context(), q,
					api.HostQuery{Sort: sort, Descending: descending, Offset: offset, Limit: hostsPerPage})
				if err != nil || total != hosts {
					t.Fatalf("%q: %d hosts, %v", sort, total, err)
				}
				for _, h := range page {
					seen[h.Host.Host] = true
					if !reflect.DeepEqual(h.Host, want[h.Host.Host].Host) {
						t.Fatalf("%q: got %+v, want %+v", sort, h.Host, want[h.Host.Host].Host)
					}
				}
			}
			if len(seen) != hosts {
				t.Errorf("%q, descending %v: the pages list %d hosts, want %d", sort, descending, len(seen), hosts)
			}
		}
	}
	page, total, err := r.Page(t.Context(), q, api.HostQuery{Search: "h45", State: HostDue, Limit: hostsPerPage})
	if err != nil || len(page) == 0 || len(page) != total {
		t.Errorf("the search finds %d of %d hosts: %v", len(page), total, err)
	}
	for _, h := range page {
		if h.State != HostDue || !strings.HasPrefix(h.Host.Host, "h45") {
			t.Errorf("the search finds %s, which is %s", h.Host.Host, h.State)
		}
	}
}
