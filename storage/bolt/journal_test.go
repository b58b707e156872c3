package bolt

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// newTestJournal returns a journal without a store.
func newTestJournal() *journal {
	opts := Options{}.withDefaults()
	damage := &damageReporter{onDamaged: func(error) {}}
	return &journal{opts: &opts, damage: damage, newHosts: &admittedHostCounter{damage: damage}, nextSegment: 1}
}

// newTestOrigin returns a new origin with a host.
func newTestOrigin(t *testing.T, number uint32, name string) *residentOrigin {
	t.Helper()
	origin := newEntry(t, "%s/", name).URL.Origin()
	o := &residentOrigin{number: number, name: origin, isNew: true,
		host: &residentHost{name: origin.Host(), number: number}}
	o.Host, o.Queue = &o.host.Host, o
	return o
}

// writeNextBatch writes the next batch of a journal, and reports whether there was one.
func writeNextBatch(t *testing.T, f *storeFile, j *journal) bool {
	t.Helper()
	w := j.nextBatch()
	if w == nil {
		return false
	}
	must(t, f.update(w.apply))
	j.markBatchWritten(w, func(*residentOrigin) {})
	return true
}

// TestJournal: changes are first written to the log, from which another journal reads them back. When
// the journal is idle they are checkpointed, and the log is empty.
func TestJournal(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	o := newTestOrigin(t, 1, "https://a.example")
	j := newTestJournal()
	j.setNote(o, "key", []byte("value"))
	j.addSeen(o, 7)
	j.markOriginAndHostChanged(o)
	writeNextBatch(t, f, j)
	if j.bufferedChangeCount == 0 || j.loggedChangeCount == 0 || j.unwrittenChangeCount() != 0 {
		t.Errorf("after the write: %d changes in memory, %d in the log, %d unwritten", j.bufferedChangeCount,
			j.loggedChangeCount, j.unwrittenChangeCount())
	}

	again := newTestJournal()
	must(t, f.view(func(tx *bbolt.Tx) error {
		log, err := again.replay(tx)
		if err != nil {
			return err
		}
		replayed := log.origins[1]
		again.adoptReplayed(replayed)
		if _, seen := replayed.pendingChanges.seenURLFingerprints.get(7); !seen || replayed.name != o.name ||
			string(replayed.pendingChanges.notes["key"]) != "value" {
			t.Errorf("replayed %+v, want what was written", replayed)
		}
		return nil
	}))
	if again.bufferedChangeCount != j.bufferedChangeCount || again.loggedChangeCount != j.loggedChangeCount ||
		again.nextSegment != j.nextSegment {
		t.Errorf("replayed %+v, want the counts of %+v", again, j)
	}

	for writeNextBatch(t, f, j) || j.loggedChangeCount > 0 { // the first call finds no change, the next one checkpoints
	}
	must(t, f.view(func(tx *bbolt.Tx) error {
		note, err := newChecksummedBucket(tx, bucketNotes).get(appendNoteKey(nil, 1, "key"))
		if err != nil || string(note) != "value" {
			t.Errorf("note %q (%v), want it in its bucket", note, err)
		}
		if key, _ := tx.Bucket([]byte(bucketLog)).Cursor().First(); key != nil {
			t.Errorf("the log still has segment %x", key)
		}
		return nil
	}))
	if j.bufferedChangeCount != 0 || !o.isFullyCheckpointed() {
		t.Errorf("%d changes are left", j.bufferedChangeCount)
	}
}

// TestJournalLimits: shouldWriteNow is true from FlushAfterChanges on, isFull from MaxBufferedChanges on.
func TestJournalLimits(t *testing.T) {
	j := newTestJournal()
	j.opts.MaxBufferedChanges, j.opts.FlushAfterChanges = 40, 20
	o := newTestOrigin(t, 1, "https://a.example")
	for n := 1; !j.isFull(); n++ {
		j.setNote(o, "key", []byte("value"))
		if got, want := j.shouldWriteNow(), n >= 20; got != want {
			t.Fatalf("after %d changes: should write %t, want %t", n, got, want)
		}
		if n > 40 {
			t.Fatal("never full")
		}
	}
}

// TestJournalCarriesFewChangesOver: when the journal is nearly full, a sweep checkpoints the origins
// with the most changes. The changes of the others, of every kind, stay in memory and in the log, from
// which another journal reads them back. When the journal is idle, they are checkpointed, too.
func TestJournalCarriesFewChangesOver(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	j := newTestJournal()
	many, few := newTestOrigin(t, 1, "https://many.example"), newTestOrigin(t, 2, "https://few.example")
	deleted := laneSlot{schedule.AwaitingRevisit, urlQueuePosition{5, 1}}
	changed := laneSlot{schedule.AwaitingRevisit, urlQueuePosition{5, 2}}
	j.putURL(few, deleted, []byte("old"))
	j.putURL(few, changed, []byte("old"))
	j.deleteURL(few, deleted)
	j.putURL(few, changed, []byte("new"))
	j.addSeen(few, 7)
	j.setRevisitPosition(few, 7, changed.urlQueuePosition)
	j.setNote(few, "key", []byte("value"))
	few.host.Due = time.Unix(9, 0)
	j.markOriginAndHostChanged(few)
	for n := range 30 {
		j.setNote(many, strconv.Itoa(n), []byte("value"))
	}

	// Write the sweep. It has one batch, whose end deletes the log from before it.
	j.opts.MaxBufferedChanges = j.bufferedChangeCount
	w := j.nextBatch()
	if len(w.originCheckpoints) != 1 || w.originCheckpoints[0].origin != many || w.trimBeforeSegment == 0 {
		t.Fatalf("the batch checkpoints %d origins and deletes the log before segment %d, want %v alone, "+
			"and the end of the sweep", len(w.originCheckpoints), w.trimBeforeSegment, many.name)
	}
	writeNextBatch(t, f, j)
	if few.pendingChanges == nil || j.bufferedChangeCount != few.pendingChanges.weightedChangeCount {
		t.Errorf("%d changes in memory, want those of %v", j.bufferedChangeCount, few.name)
	}
	if j.isCheckpointUrgent() {
		t.Error("the journal is still nearly full")
	}

	// Read the log as after a crash.
	again := newTestJournal()
	must(t, f.view(func(tx *bbolt.Tx) error {
		log, err := again.replay(tx)
		if err != nil {
			return err
		}
		if log.origins[1] != nil || log.origins[2] == nil || len(log.hostRecords[2]) == 0 {
			t.Fatalf("replayed %+v, want the origin and the host of %v", log, few.name)
		}
		again.adoptReplayed(log.origins[2])
		if log.origins[2].name != few.name {
			t.Errorf("origin %v, want %v", log.origins[2].name, few.name)
		}
		opts := cmp.AllowUnexported(originChanges{}, sortedSliceSet[slotChange]{}, slotChange{}, laneSlot{},
			urlQueuePosition{}, sortedSliceSet[urlFingerprint]{})
		if diff := cmp.Diff(few.pendingChanges, log.origins[2].pendingChanges, opts); diff != "" {
			t.Errorf("changes (-in memory +replayed):\n%s", diff)
		}
		return nil
	}))
	if again.loggedChangeCount != j.loggedChangeCount {
		t.Errorf("%d changes in the log, want %d", again.loggedChangeCount, j.loggedChangeCount)
	}

	for writeNextBatch(t, f, j) || j.loggedChangeCount > 0 { // the first call finds no change, the next one checkpoints
	}
	if j.bufferedChangeCount != 0 || !few.isFullyCheckpointed() {
		t.Errorf("%d changes are left", j.bufferedChangeCount)
	}
}

// TestJournalCheckpointsImportedFingerprints: a sweep does not carry over an origin with many
// fingerprints and hardly any other change, as an import leaves it: the log would stay full.
func TestJournalCheckpointsImportedFingerprints(t *testing.T) {
	j := newTestJournal()
	j.opts.MaxBufferedChanges = 100
	imported, busy := newTestOrigin(t, 1, "https://imported.example"), newTestOrigin(t, 2, "https://busy.example")
	for p := range urlFingerprint(300) {
		j.addSeen(imported, p)
	}
	for n := range 60 {
		j.setNote(busy, strconv.Itoa(n), []byte("value"))
	}
	if w := j.nextBatch(); w.trimBeforeSegment == 0 || imported.pendingChanges != nil {
		t.Errorf("%v is carried over, or the sweep has not ended: %+v", imported.name, w)
	}
}

// TestJournalIdleCarriesNothingOver: when the journal becomes idle within a sweep that began while it
// was nearly full, the rest of the sweep checkpoints every origin.
func TestJournalIdleCarriesNothingOver(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	j := newTestJournal()
	j.opts.maxCheckpointPages = 1
	many, few := newTestOrigin(t, 1, "https://many.example"), newTestOrigin(t, 2, "https://few.example")
	for n := range 30 {
		j.setNote(many, strconv.Itoa(n), []byte("value"))
	}
	j.setNote(few, "key", []byte("value"))
	j.opts.MaxBufferedChanges = j.bufferedChangeCount
	writeNextBatch(t, f, j)
	if j.isCheckpointUrgent() || len(j.originsToCheckpoint) != 1 {
		t.Fatalf("%d origins are left of the sweep, want %v alone", len(j.originsToCheckpoint), few.name)
	}

	writeNextBatch(t, f, j) // finds no change
	writeNextBatch(t, f, j)
	if j.loggedChangeCount != 0 || !few.isFullyCheckpointed() {
		t.Errorf("%d changes are left in the log", j.loggedChangeCount)
	}
}

// TestMinChangesOfHalf: the origins with the returned number of changes or more have at least half of
// all changes, and those with more changes than that number have less than half.
func TestMinChangesOfHalf(t *testing.T) {
	for _, tt := range []struct {
		changes []int
		want    int
	}{
		{[]int{1}, 1},
		{[]int{2, 2, 2}, 2}, // none is carried over
		{[]int{1, 1, 1, 2}, 1},
		{[]int{1, 1, 2}, 2},
		{[]int{3, 1, 2, 10}, 10},
		{[]int{30, 40, 50}, 40},
		{[]int{70, 500, 1000, 3}, 64},
	} {
		var origins []*residentOrigin
		for _, n := range tt.changes {
			origins = append(origins, &residentOrigin{pendingChanges: &originChanges{weightedChangeCount: n}})
		}
		if got := minChangesOfHalf(origins); got != tt.want {
			t.Errorf("of origins with %v changes: %d, want %d", tt.changes, got, tt.want)
		}
	}
}
