package bolt

import (
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// maxCheckpointPages is about the largest number of pages of the file that the checkpoints of one
// transaction change. bbolt holds each of these pages in memory twice.
const maxCheckpointPages = 2000

// fillPercent is how full bbolt leaves a page that it splits: it leaves room because most pages grow
// in the middle, where the records of one origin end and those of the next begin.
const fillPercent = 0.75

// A writeBatch is the content of one transaction: the segments of the log since the last batch, and
// checkpoints of some origins. It is written whole or not at all, and does not change after
// buildWriteBatch has returned it.
type writeBatch struct {
	number             uint64 // counts batches
	segments           [][]byte
	firstSegment       uint64 // number of the first segment
	originCheckpoints  []originCheckpoint
	newHosts           unwrittenNewHosts
	trimBeforeSegment  uint64 // the log before this segment is checkpointed and deleted; 0: nothing is deleted
	trimmedChangeCount int    // number of changes that are deleted
}

// An originCheckpoint holds the changes of one origin that a batch writes to their final place. The
// committer applies it without engine.mu, and so reads only the names and numbers of origin and its
// host, which never change.
type originCheckpoint struct {
	*originChanges
	origin     *residentOrigin
	isNew      bool   // the origin may be missing in the bucket names
	record     []byte // the origin's record; nil if only some fingerprints are checkpointed
	hostRecord []byte // the host's record; nil if the host has not changed
}

// apply writes w within tx.
func (w *writeBatch) apply(tx *bbolt.Tx) error {
	// Write bucket by bucket, in the order of the keys, since neighbouring keys share a page.
	steps := []struct {
		bucket string
		put    func(*originCheckpoint, checksummedBucket) error
	}{
		{bucketNames, (*originCheckpoint).putNamesIfNew},
		{bucketHosts, (*originCheckpoint).putHostIfChanged},
		{bucketOrigins, (*originCheckpoint).putRecord},
		{bucketURLs, (*originCheckpoint).applyURLChanges},
		{bucketFingerprints, (*originCheckpoint).putFingerprints},
		{bucketRevisits, (*originCheckpoint).putRevisits},
		{bucketNotes, (*originCheckpoint).putNotes},
	}
	for _, step := range steps {
		b := newChecksummedBucket(tx, step.bucket)
		b.FillPercent = fillPercent
		for i := range w.originCheckpoints {
			if err := step.put(&w.originCheckpoints[i], b); err != nil {
				return err
			}
		}
	}
	if err := w.newHosts.write(tx); err != nil {
		return err
	}
	return w.updateLog(tx.Bucket([]byte(bucketLog)))
}

// updateLog appends the segments of w to the log, except those that are checkpointed already, and
// deletes the log before trimBeforeSegment.
func (w *writeBatch) updateLog(b *bbolt.Bucket) error {
	b.FillPercent = 1 // the bucket grows only at its end
	for i, segment := range w.segments {
		if number := w.firstSegment + uint64(i); number >= w.trimBeforeSegment {
			key := binary.BigEndian.AppendUint64(nil, number)
			if err := b.Put(key, withChecksum(key, segment)); err != nil {
				return err
			}
		}
	}
	if w.trimBeforeSegment == 0 {
		return nil
	}
	// Delete from the first segment on. Deleting a missing number has no effect.
	key, _ := b.Cursor().First()
	if key == nil {
		return nil
	}
	for number := binary.BigEndian.Uint64(key); number < w.trimBeforeSegment; number++ {
		if err := b.Delete(binary.BigEndian.AppendUint64(nil, number)); err != nil {
			return err
		}
	}
	return nil
}

func (f *originCheckpoint) putNamesIfNew(names checksummedBucket) error {
	if !f.isNew {
		return nil
	}
	key := originNameKey(f.origin.name.String())
	if names.Get(key) != nil {
		return nil
	}
	if err := names.setOrDelete(key, numberKey(f.origin.number)); err != nil {
		return err
	}
	return names.setOrDelete(hostNameKey(f.origin.host.name), numberKey(f.origin.host.number))
}

func (f *originCheckpoint) putHostIfChanged(hosts checksummedBucket) error {
	if f.hostRecord == nil {
		return nil
	}
	return hosts.setOrDelete(numberKey(f.origin.host.number), f.hostRecord)
}

func (f *originCheckpoint) putRecord(origins checksummedBucket) error {
	if f.record == nil {
		return nil
	}
	return origins.setOrDelete(numberKey(f.origin.number), f.record)
}

func (f *originCheckpoint) applyURLChanges(urls checksummedBucket) error {
	key := make([]byte, 0, urlKeyLen)
	for change := range f.urls.all {
		key = appendURLKey(key[:0], f.origin.number, change.laneSlot)
		var err error
		if change.value == nil {
			err = urls.Delete(key)
		} else {
			err = urls.Put(key, change.value) // the value already ends with its checksum
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *originCheckpoint) putFingerprints(fingerprints checksummedBucket) error {
	added := make([]urlFingerprint, 0, f.seenURLFingerprints.len())
	return addFingerprints(fingerprints, f.origin.number, slices.AppendSeq(added, f.seenURLFingerprints.all))
}

func (f *originCheckpoint) putRevisits(revisits checksummedBucket) error {
	for _, p := range slices.Sorted(maps.Keys(f.revisitPositions)) {
		var value []byte
		if at := f.revisitPositions[p]; at != noLanePosition {
			value = appendURLKey(nil, f.origin.number, laneSlot{schedule.AwaitingRevisit, at})
		}
		if err := revisits.setOrDelete(appendFingerprintKey(nil, f.origin.number, p), value); err != nil {
			return err
		}
	}
	return nil
}

func (f *originCheckpoint) putNotes(notes checksummedBucket) error {
	for _, key := range slices.Sorted(maps.Keys(f.notes)) {
		if err := notes.setOrDelete(appendNoteKey(nil, f.origin.number, key), f.notes[key]); err != nil {
			return err
		}
	}
	return nil
}
