package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// TestURLQueues: a lane is read in its order, with some URLs in the journal and some in the file.
func TestURLQueues(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	x := newTestIndex(t, f, Options{})
	q := urlQueues{journal: x.journal, damageReporter: x.damageReporter, heads: x.heads, index: x}
	e := newEntry(t, "https://a.example/")
	lane := schedule.LaneOf(&e)
	put := func(o *residentOrigin, path string, rank int64) {
		e := newEntry(t, "https://a.example/%s", path)
		q.put(o, lane, rank, &e)
	}
	paths := func(tx *bbolt.Tx, o *residentOrigin, id schedule.LaneID) (all string) {
		items, more := q.listUnleased(tx, o, laneSlot{id, firstPosition}, 10)
		if more {
			t.Error("there are more")
		}
		for _, i := range items {
			e := must1(parseEntry(i.value, o.number, o.name, laneSlot{id, i.urlQueuePosition}))
			all += e.URL.PathAndQuery()
		}
		return all
	}
	var o *residentOrigin
	must(t, f.view(func(tx *bbolt.Tx) (err error) {
		o, err = x.getOrCreate(tx, newEntry(t, "https://a.example/").URL.Origin())
		put(o, "second", 5)
		put(o, "third", 5)
		return err
	}))
	checkpointJournal(t, f, q.journal, func(*residentOrigin) {})
	must(t, f.view(func(tx *bbolt.Tx) error {
		put(o, "first", 1)
		if got, want := paths(tx, o, lane), "/first/second/third"; got != want {
			t.Errorf("the lane is %s, want %s", got, want)
		}
		l := o.getOrCreateLane(lane)
		q.loadHead(tx, o, l)
		if first := q.heads.pop(l); l.count != 2 || o.Total != 3 || q.heads.weight != 2 {
			t.Errorf("popped %v: %d URLs are left of %d, weight %d", first, l.count, o.Total, q.heads.weight)
		}
		return nil
	}))
}

// TestURLQueuesUnpark: a parked URL returns to its lane if shouldUnpark returns true for it. A damaged
// record is quarantined.
func TestURLQueuesUnpark(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	x := newTestIndex(t, f, Options{})
	damaged := 0
	damage := &damageReporter{onDamaged: func(error) { damaged++ }}
	q := urlQueues{journal: x.journal, damageReporter: damage, heads: x.heads, index: x}
	must(t, f.view(func(tx *bbolt.Tx) error {
		o := must1(x.getOrCreate(tx, newEntry(t, "https://a.example/").URL.Origin()))
		for _, path := range []string{"a", "b", "c"} {
			e := newEntry(t, "https://a.example/%s", path)
			q.put(o, parkedLane, 0, &e)
		}
		q.journal.putURL(o, laneSlot{parkedLane, urlQueuePosition{seq: 2}}, []byte("torn"))
		from := laneSlot{parkedLane, firstPosition}
		n, more := q.unparkBatch(tx, o, &from, o.lastSeq, func(e storage.Entry) bool {
			return e.URL.PathAndQuery() == "/c"
		})
		if n != 1 || more || damaged != 1 || q.parkedCount != 1 || o.parkedCount != 1 || o.Total != 1 {
			t.Errorf("%d unparked (more: %t), %d damaged, %d parked, %d queued, want 1 of each", n, more,
				damaged, q.parkedCount, o.Total)
		}
		return nil
	}))
}

// TestURLQueuesReschedule: a page becomes due at once if it was modified after its visit.
func TestURLQueuesReschedule(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	x := newTestIndex(t, f, Options{})
	q := urlQueues{journal: x.journal, damageReporter: x.damageReporter, heads: x.heads, index: x}
	visited := time.Unix(1e9, 0)
	now, revisit := visited.Add(time.Hour), visited.Add(24*time.Hour)
	must(t, f.view(func(tx *bbolt.Tx) error {
		e := newEntry(t, "https://a.example/page")
		e.VisitHistorySummary = &storage.VisitHistorySummary{VisitedAt: visited}
		o := must1(x.getOrCreate(tx, e.URL.Origin()))
		q.put(o, schedule.AwaitingRevisit, schedule.Nanos(revisit), &e)
		for _, step := range []struct {
			modified, wantDue time.Time
			want              bool
		}{{visited, revisit, false}, {visited.Add(time.Minute), now, true}} {
			got := q.rescheduleIfModified(tx, o, storage.SitemapLastmod{URL: e.URL, Modified: step.modified}, now)
			if _, due := o.RevisitCountAndFirstDue(); got != step.want || due > schedule.Nanos(step.wantDue) {
				t.Errorf("modified %v: rescheduled %t, due %v, want %t, %v", step.modified, got,
					time.Unix(0, due), step.want, step.wantDue)
			}
		}
		return nil
	}))
}
