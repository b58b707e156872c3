package bolt

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// TestLeaseTable: a lease ends once, by an ack or by expiry. Its URL goes to the lane of the outcome.
func TestLeaseTable(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	x := newTestIndex(t, f, Options{})
	q := urlQueues{journal: x.journal, damageReporter: x.damageReporter, heads: x.heads, index: x}
	table := leaseTable{schedule: &x.schedule, journal: x.journal, queues: &q, leases: make(map[uint64]*lease)}
	now := time.Unix(1e9, 0)
	must(t, f.view(func(tx *bbolt.Tx) error {
		e := newEntry(t, "https://a.example/page")
		e.Request = &storage.NonGETRequest{Method: "POST"}
		o := must1(x.getOrCreate(tx, e.URL.Origin()))
		q.put(o, schedule.LaneOf(&e), schedule.RankOf(&e), &e)
		x.schedule.UpdateOrigin(&o.Origin)
		next := func() storage.Lease {
			t.Helper()
			table.expire(now)
			due := x.schedule.NextOrigin(now)
			if due == nil {
				t.Fatal("no origin is due")
			}
			l, ok := table.leaseNext(tx, due.Queue, now, now.Add(time.Minute))
			if !ok || l.URL != e.URL || len(table.leasedEntriesOfOrigin(o.name)) != 1 || len(o.leasedSlots) != 1 {
				t.Fatalf("leased %+v (%t), %v are out", l, ok, table.leasedEntriesOfOrigin(o.name))
			}
			return l
		}
		first := next()
		must(t, table.markSent(&first, true))
		must(t, table.renew(&first, now, now.Add(2*time.Minute)))
		now = now.Add(2 * time.Minute) // the lease expires
		if err := table.renew(&first, now, now.Add(time.Minute)); !errors.Is(err, storage.ErrStaleLease) {
			t.Errorf("renew at the end: %v, want %v", err, storage.ErrStaleLease)
		}
		second := next()
		if !second.Sent || second.Token == first.Token {
			t.Errorf("leased again: %+v, want it marked as sent, with another token", second)
		}
		for call, err := range map[string]error{"markSent": table.markSent(&first, false),
			"ack": table.ack(&storage.Ack{Lease: first})} {
			if !errors.Is(err, storage.ErrStaleLease) {
				t.Errorf("%s of a lease that ran out: %v, want %v", call, err, storage.ErrStaleLease)
			}
		}
		due := now.Add(time.Hour)
		table.delayLeasedHosts(func() time.Time { return now }, time.Hour)
		must(t, table.ack(&storage.Ack{Lease: second, Outcome: storage.Park}))
		if len(table.leases) != 0 || o.leasedSlots != nil || o.parkedCount != 1 || !o.host.Due.Equal(due) ||
			x.schedule.Counts().LeasedURLs != 0 {
			t.Errorf("after the ack: %d leases, %d parked, host due %v, want none, 1, %v", len(table.leases),
				o.parkedCount, o.host.Due, due)
		}
		for lane, want := range map[schedule.LaneID]int{schedule.LaneOf(&e): 0,
			schedule.LaneOf(&e).ReturnedLane(): 0, parkedLane: 1} {
			if left, _ := q.listUnleased(tx, o, laneSlot{lane, firstPosition}, 10); len(left) != want {
				t.Errorf("%d URLs are in lane %d, want %d", len(left), lane, want)
			}
		}
		return nil
	}))
}
