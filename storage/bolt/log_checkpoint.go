package bolt

import (
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// maxCheckpointPages is about how many pages of the file one transaction's checkpoints change:
// bbolt holds each of them in memory, twice.
const maxCheckpointPages = 2000

// fillPercent is how full bbolt leaves a page that it splits. Most grow in the
// middle, where one origin ends and the next begins.
const fillPercent = 0.75

// A writeBatch is what one transaction brings to the file: the segments of the log
// since the write before, and some origins' changes, each in its place. It is
// written whole or not at all, and does not change once it is made.
type writeBatch struct {
	number             uint64
	segments           [][]byte
	firstSegment       uint64 // number of the first segment
	originCheckpoints  []originCheckpoint
	newHosts           unwrittenNewHosts
	trimBeforeSegment  uint64 // the whole log before this segment is checkpointed; 0: a part is not
	trimmedChangeCount int    // changes of the log that go with that
}

// An originCheckpoint is what becomes of one origin. Of the origin and its host it reads the names and
// numbers alone, which do not change.
type originCheckpoint struct {
	*originChanges
	origin     *residentOrigin
	isNew      bool   // perhaps not in names yet
	record     []byte // nil if only some of the fingerprints are checkpointed
	hostRecord []byte // if the host has changed
}

// apply writes w, bucket by bucket, in the order of keys: neighbours share a page.
func (w *writeBatch) apply(tx *bbolt.Tx) error {
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

// updateLog brings the log up to date. What is checkpointed already does not go there.
func (w *writeBatch) updateLog(b *bbolt.Bucket) error {
	b.FillPercent = 1 // it grows at its end
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
			err = urls.Put(key, change.value) // it ends with its checksum
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
