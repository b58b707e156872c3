package inspect

import (
	"runtime"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestReportMemory: a report keeps for each host only the values to sort it and to read it again.
// With a limit, and for the numbers of the frontier, it keeps only a hash per host, and frees it at
// the end. A list of hosts keeps the values to sort them.
func TestReportMemory(t *testing.T) {
	const hosts = 5000
	store := memory.New(memory.Config{})
	daemontest.FillLargeCrawl(t, store, hosts)
	p := project.Default()
	gateConfig, err := p.GateConfig()
	if err != nil {
		t.Fatal(err)
	}
	q := &Inspector{Project: p, FrontierStore: store, Gate: gate.New(gateConfig, memory.New(memory.Config{})),
		AsOf:  time.Now(),
		Scope: func() *frontier.Scope { return nil }}
	report := func(limit, maxInMemory int) func() any {
		return func() any {
			s, err := q.streamedReport(t.Context(), "", limit, maxInMemory)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range s.Hosts {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if limit == 0 && n != hosts {
				t.Fatalf("%d hosts", n)
			}
			return s
		}
	}
	stats := func() any {
		s, err := q.FrontierStats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	listHosts := func() any {
		r, err := q.NewHostList(t.Context())
		if err == nil {
			_, _, err = r.Page(t.Context(), q, api.HostQuery{Sort: "requests", Limit: 50})
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range min(MaxHostsInMemory, len(r.hosts)) {
			r.hosts[i].details = nil // MaxHostsInMemory limits them
		}
		return r
	}
	for _, tt := range []struct {
		name        string
		do          func() any
		least, most int64 // bytes per host; other tests may free some meanwhile
	}{
		{"held", report(0, hosts), 500, 4000}, // shows that the measurement works
		{"all hosts", report(0, 0), -100, 150},
		{"20 hosts", report(20, 0), -100, 50},
		{"stats", stats, -100, 50},
		{"roster", listHosts, -100, 150},
	} {
		before := daemontest.HeapInUse()
		result := tt.do()
		took := (daemontest.HeapInUse() - before) / hosts
		runtime.KeepAlive(result)
		if took < tt.least || took > tt.most {
			t.Errorf("%s: %d bytes per host, want %d to %d", tt.name, took, tt.least, tt.most)
		}
	}
}
