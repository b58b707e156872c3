package bolt

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
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
