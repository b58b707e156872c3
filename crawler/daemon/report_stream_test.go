package daemon

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// manyHosts returns a question to a crawl of n hosts, every tenth of which has two
// origins, with URLs in all states but parked.
func manyHosts(t testing.TB, n int) *inquiry {
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
			if _, err := store.Add(t.Context(), []storage.Entry{{URL: u, Source: storage.Link}}, 0); err != nil {
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
		outcome := []storage.Outcome{storage.Done, storage.Later, storage.Rest}[i%3]
		err := store.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: outcome, At: now.Add(time.Hour),
			Host: &storage.Host{Due: now.Add(time.Duration(i) * time.Second), Gap: time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	p := DefaultProject()
	gate, err := p.gateConfig()
	if err != nil {
		t.Fatal(err)
	}
	return &inquiry{project: p, store: store, gate: robots.NewGate(gate, storage.NewMemory(storage.Config{})), now: now}
}

// A report that is added up host by host says what one says that holds all hosts, and
// so do the numbers of the frontier.
func TestStreamedReportIsTheSame(t *testing.T) {
	for _, limit := range []int{0, 1, 20, 500, 5000} {
		q := manyHosts(t, 1000)
		var texts [2]bytes.Buffer
		for i := range texts {
			q.still = i == 1
			s, err := q.survey(t.Context(), "", limit)
			if err != nil {
				t.Fatal(err)
			}
			if err := writeJSON(&texts[i], s); err != nil {
				t.Fatal(err)
			}
		}
		if texts[0].String() != texts[1].String() {
			t.Errorf("limit %d: streamed %d bytes, held %d, or others", limit, texts[1].Len(), texts[0].Len())
		}
	}
	q := manyHosts(t, 1000)
	var stats [2]*frontierStats
	for i := range stats {
		q.still = i == 1
		s, err := (&kept{inquiry: *q}).count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stats[i] = s
	}
	if !reflect.DeepEqual(stats[0], stats[1]) {
		t.Errorf("streamed %+v, held %+v", stats[1], stats[0])
	}
}

// What a report with a limit holds of hosts grows with those of several origins, not
// with all of them.
func TestStreamedReportHoldsFewHosts(t *testing.T) {
	const hosts = 5000
	q := manyHosts(t, hosts)
	q.still = true
	done := 0
	kept, err := q.eachHost(context.Background(), "", func(*storage.OriginInfo) {}, func(*surveyed) { done++ })
	held := len(kept)
	if err != nil || held+done != hosts || held > hosts/10 {
		t.Errorf("%d hosts are held and %d streamed (%v), want %d held at most of %d", held, done, err, hosts/10, hosts)
	}
}
