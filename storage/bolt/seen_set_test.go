package bolt

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// TestFingerprints: the bucket prints holds the same as a map, after batches of fingerprints of three
// origins, with the lowest and the highest possible ones.
func TestFingerprints(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{noSync: true})
	defer s.Close()
	type key struct {
		origin      uint32
		fingerprint urlFingerprint
	}
	r := rand.New(rand.NewPCG(1, 2))
	want := make(map[key]bool)
	for round := range 200 {
		origin := uint32(1 + r.IntN(3))
		added := []urlFingerprint{urlFingerprint(r.Uint64()), 0, maxFingerprint}
		for range r.IntN(400) {
			added = append(added, urlFingerprint(r.Uint64()))
		}
		if round%3 == 0 {
			added = added[:1]
		}
		slices.Sort(added)
		must(t, s.engine.file.db.Update(func(tx *bbolt.Tx) error {
			return addFingerprints(newChecksummedBucket(tx, bucketFingerprints), origin, added)
		}))
		for _, p := range added {
			want[key{origin, p}] = true
		}
	}
	must(t, s.engine.file.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketFingerprints))
		has := func(k key) bool {
			has, damaged := hasFingerprintOnDisk(b.Cursor(), k.origin, k.fingerprint, nil)
			if damaged != nil {
				t.Errorf("value %x is damaged", damaged)
			}
			return has
		}
		for k := range want {
			if !has(k) {
				t.Fatalf("%v is not there", k)
			}
			for _, k := range []key{{k.origin, k.fingerprint + 1}, {k.origin + 1, k.fingerprint},
				{4, k.fingerprint}, {0, k.fingerprint}} {
				if has(k) != want[k] {
					t.Fatalf("%v is there: %t", k, !want[k])
				}
			}
		}
		n, longest := 0, 0
		must(t, b.ForEach(func(_, value []byte) error {
			n += len(value) / fingerprintLen
			longest = max(longest, len(value)/fingerprintLen)
			return nil
		}))
		if n != len(want) || longest > maxFingerprints {
			t.Errorf("%d fingerprints, at most %d together, want %d and %d", n, longest, len(want), maxFingerprints)
		}
		return nil
	}))
}

// TestSortedRun: a sortedSliceSet has the same elements as a map, after random additions.
func TestSortedRun(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, keyRange := range []int{10, 100_000} { // many equal elements, and few
		var run sortedSliceSet[slotChange]
		want := make(map[int64]byte)
		for i := range 5000 {
			at := r.Int64N(int64(keyRange))
			if i%2 == 0 {
				at = int64(keyRange + i) // at the end
			}
			v := byte(r.IntN(256))
			run.put(slotChange{laneSlot{7, urlQueuePosition{0, at}}, []byte{v}})
			want[at] = v
		}
		from := int64(keyRange / 2)
		var sorted []int64
		for at, v := range want {
			got, ok := run.get(slotChange{laneSlot: laneSlot{7, urlQueuePosition{0, at}}})
			if !ok || got.value[0] != v {
				t.Fatalf("at %d: %v, %t, want %d", at, got, ok, v)
			}
			if at >= from {
				sorted = append(sorted, at)
			}
		}
		slices.Sort(sorted)
		c := run.cursorFrom(slotChange{laneSlot: laneSlot{7, urlQueuePosition{0, from}}})
		for _, at := range sorted {
			if x, ok := c.peek(); !ok || x.seq != at {
				t.Fatalf("%v, %t, want %d", x, ok, at)
			}
			c.advance()
		}
		if _, ok := c.peek(); ok || run.len() != len(want) {
			t.Errorf("%d elements, want %d, and no more", run.len(), len(want))
		}
		if _, ok := run.get(slotChange{laneSlot: laneSlot{8, urlQueuePosition{0, from}}}); ok {
			t.Error("an element is there that was not added")
		}
	}
}

// FuzzReplaySegment: replaySegment accepts or refuses any bytes as a segment of the log.
func FuzzReplaySegment(f *testing.F) {
	var r redoLogBuffer
	at := laneSlot{7, urlQueuePosition{1, 2}}
	r.putURL(1, at, []byte("value"))
	r.deleteURL(1, at)
	r.addSeen(2, 3)
	r.setNote(1, "key", []byte("note"))
	r.setNote(1, "key", nil)
	r.setURLRevisitPosition(1, 3, at.urlQueuePosition)
	r.putRecord(opOrigin, 1, appendOriginRecord(nil, new(residentOrigin)))
	r.putRecord(opHost, 1, []byte("host"))
	f.Add(r.takeSegments()[0])
	f.Add([]byte{opPut, 1, 7, 1, 2, 0xff, 0xff, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		log := replayedLogState{make(map[uint32]*residentOrigin), make(map[uint32][]byte), make(map[uint32]bool)}
		if n, err := replaySegment(b, &log); err == nil && n == 0 && len(b) > 0 {
			t.Errorf("%x was read as a segment without changes", b)
		}
	})
}

// TestSeenSet: the set has a fingerprint from add on, in the journal and in the file.
func TestSeenSet(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	s := seenSet{journal: newTestJournal(), damageReporter: &damageReporter{}}
	o := newTestOrigin(t, 1, "https://a.example")
	check := func(when string, p urlFingerprint, want bool) {
		t.Helper()
		must(t, f.view(func(tx *bbolt.Tx) error {
			if seen, certain := s.has(tx.Bucket([]byte(bucketFingerprints)).Cursor(), o, p); seen != want || !certain {
				t.Errorf("%s: %d is seen: %t (certain: %t), want %t", when, p, seen, certain, want)
			}
			return nil
		}))
	}
	check("new", 7, false)
	s.add(o, 7)
	check("added", 7, true)
	check("added", 8, false)
	checkpointJournal(t, f, s.journal, func(*residentOrigin) {})
	if o.pendingChanges != nil {
		t.Fatal("not checkpointed")
	}
	check("checkpointed", 7, true)
	check("checkpointed", 8, false)
	must(t, f.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketFingerprints)).Cursor()
		if s.addIfNew(c, o, 7) || !s.addIfNew(c, o, 8) || s.count != 2 || o.seenCount != 2 {
			t.Errorf("%d fingerprints, %d of the origin, want 2", s.count, o.seenCount)
		}
		return nil
	}))
}
