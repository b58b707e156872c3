package main

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small is a plan that takes a moment.
func small(hosts int) *crawl {
	p := plan{Workers: 50, Warm: 10 * time.Second, Time: time.Minute, Refresh: 500 * time.Millisecond, Lease: 30 * time.Second, Seed: 7}
	return newCrawl(p, hosts, 5, 16)
}

// Where there are more hosts that are due than workers nobody waits, and hosts are
// visited in turn; where there are few, workers wait, and hosts do not.
func TestSimulate(t *testing.T) {
	many, err := small(3000).run()
	if err != nil {
		t.Fatal(err)
	}
	few, err := small(20).run()
	if err != nil {
		t.Fatal(err)
	}
	if w := many.waiting(); w > 0.01 {
		t.Errorf("of many hosts the workers waited for %.3f of their time", w)
	}
	if w := few.waiting(); w < 0.5 || w > 1 {
		t.Errorf("of few hosts the workers waited for %.3f of their time", w)
	}
	for name, r := range map[string]*result{"many": many, "few": few} {
		pages, calls := r.all()
		var sum load
		for _, l := range r.loads {
			sum.leased += l.leased
			sum.ack += l.ack
			sum.ask += l.ask
		}
		if pages == 0 || calls < 2*pages || sum.ack < pages || len(r.lates) != sum.leased || sum.leased-sum.ack > 50 || sum.ack-sum.leased > 50 {
			t.Errorf("%s: %d pages, %d calls, %+v, %d visits", name, pages, calls, sum, len(r.lates))
		}
		// Each of 5 processes asks 16 partitions every half second, if it waits at all.
		if sum.ask > 16*5*2*61 {
			t.Errorf("%s: %d calls only asked", name, sum.ask)
		}
	}
}

// Where twenty processes wait for the same hosts most calls are not in vain, and no host
// waits for long for who has left it to others.
func TestFewCallInVain(t *testing.T) {
	p := plan{Workers: 200, Warm: 10 * time.Second, Time: time.Minute, Refresh: 500 * time.Millisecond, Lease: 30 * time.Second, Seed: 7}
	r, err := newCrawl(p, 200, 20, 8).run()
	if err != nil {
		t.Fatal(err)
	}
	_, calls := r.all()
	vain := 0
	for _, l := range r.loads {
		vain += l.vain
	}
	if share := float64(vain) / float64(calls); share > 0.25 {
		t.Errorf("%.2f of the calls are in vain", share)
	}
	slices.Sort(r.lates)
	if late := r.quantile(1); late > 0.5 {
		t.Errorf("a host waited for %v s", late)
	}
}

// A run comes out the same each time, and its tables have a row for each combination.
func TestRun(t *testing.T) {
	p := plan{Hosts: "20,50", Processes: "1,3", Partitions: "4,16", Masters: "1,3", Workers: 10,
		Time: 10 * time.Second, Refresh: time.Second, Lease: time.Second, Seed: 7}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(p, out, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Error(diff)
	}
	if n := bytes.Count(first.Bytes(), []byte("\n")); n != 2+8+2+2*8 {
		t.Errorf("%d lines:\n%s", n, &first)
	}
	p.Processes = "11"
	if err := run(p, io.Discard, io.Discard); err == nil {
		t.Error("11 processes of 10 workers: no error")
	}
}
