package bolt

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// maxCheckpointPages is about how many pages of the file one transaction folds into:
// bbolt holds each of them in memory, twice.
const maxCheckpointPages = 2000

// fillPercent is how full bbolt leaves a page that it splits. Most grow in the
// middle, where one origin ends and the next begins.
const fillPercent = 0.75

// maxLogFactor bounds the log, in changes for each that may be held: changes that
// undo each other are held once, and are all in the log.
const maxLogFactor = 4

// redoLogState is the state of the log in the file.
type redoLogState struct {
	nextSegment           uint64 // number of the next one
	loggedChangeCount     int    // changes in the log
	sweepEndSegment       uint64 // the present pass folds all of the log before this piece
	changesBeforeSweepEnd int    // changes there
}

// A writeBatch is what one transaction brings to the file: the pieces of the log
// since the write before, and some origins' changes, each in its place. It is
// written whole or not at all, and does not change once it is made.
type writeBatch struct {
	number             uint64
	segments           [][]byte
	firstSegment       uint64 // number of the first piece
	originCheckpoints  []originCheckpoint
	newHosts           *unwrittenNewHosts // new hosts; nil: no host is new
	trimBeforeSegment  uint64             // the whole log before this piece is folded; 0: a part is not
	trimmedChangeCount int                // changes of the log that go with that
}

// An originCheckpoint is what becomes of one origin.
type originCheckpoint struct {
	*originChanges
	origin         *loadedOrigin
	originNumber   uint32
	isNew          bool // perhaps not in names yet
	name           string
	record         []byte          // nil if only some of the fingerprints are folded
	hostCheckpoint *hostCheckpoint // if it has changed
}

type hostCheckpoint struct {
	number uint32
	name   string
	record []byte
}

// isCheckpointUrgent reports whether so much is held that it should be folded now.
func (s *Store) isCheckpointUrgent() bool {
	maxChanges := s.maxBufferedChanges()
	return s.bufferedChangeCount >= maxChanges*3/4 || s.loggedChangeCount >= maxLogFactor*maxChanges*3/4
}

// shouldCheckpointWhileBusy reports whether there is time to fold beside so many changes that are to be
// written, and enough held for it to be worth it: several for each origin. A store
// that is never quite idle, as a daemon's, would otherwise hold what a fast crawl needs.
func (s *Store) shouldCheckpointWhileBusy(unwritten int) bool {
	const several = 4
	isWorthwhile := s.bufferedChangeCount >= max(s.maxBufferedChanges()/8, several*len(s.dirtyOrigins))
	return unwritten < s.opts.FlushAfterChanges/8 && (isWorthwhile || len(s.originsToCheckpoint) > 0)
}

// buildWriteBatch makes the next write; nil if there is nothing to write.
func (s *Store) buildWriteBatch() *writeBatch {
	unwritten := s.unwrittenChangeCount()
	idle := unwritten == 0
	if idle && (s.loggedChangeCount == 0 || !s.unchangedSinceWrite && !s.isCheckpointUrgent()) {
		s.unchangedSinceWrite = true
		return nil
	}
	s.unchangedSinceWrite = idle
	s.lastBatchNumber++
	w := &writeBatch{number: s.lastBatchNumber, firstSegment: s.nextSegment, newHosts: s.admittedHosts.takePending()}
	s.appendChangedOriginsAndHosts()
	s.loggedChangeCount += s.redoLog.changeCount
	w.segments = s.redoLog.takeSegments()
	s.nextSegment += uint64(len(w.segments))
	if idle || s.isCheckpointUrgent() || s.shouldCheckpointWhileBusy(unwritten) {
		s.addDirtyOriginsToBatch(w)
	}
	return w
}

// unwrittenChangeCount returns how many changes are to be written, about.
func (s *Store) unwrittenChangeCount() int {
	return s.redoLog.changeCount + len(s.unloggedOrigins) + len(s.unloggedHosts) + s.admittedHosts.pendingCount()
}

// appendChangedOriginsAndHosts puts into the log what the changed origins and hosts are now.
func (s *Store) appendChangedOriginsAndHosts() {
	var buf []byte
	for _, o := range s.unloggedOrigins {
		o.hasUnloggedChanges = false
		buf = appendOriginRecord(buf[:0], o)
		s.redoLog.putRecord(opOrigin, o.number, buf)
	}
	for _, h := range s.unloggedHosts {
		h.hasUnloggedChanges = false
		buf = record.AppendHostState(buf[:0], &h.HostState)
		s.redoLog.putRecord(opHost, h.number, buf)
	}
	clear(s.unloggedOrigins) // lets them be collected
	clear(s.unloggedHosts)
	s.unloggedOrigins, s.unloggedHosts = s.unloggedOrigins[:0], s.unloggedHosts[:0]
}

// addDirtyOriginsToBatch adds the next origins of the pass to w: their state of now, all of
// which is in the log or in w. A pass folds every origin that has changes at
// its beginning, in the order of the file; when it has ended, the log from
// before is not needed any more.
func (s *Store) addDirtyOriginsToBatch(w *writeBatch) {
	if len(s.originsToCheckpoint) == 0 {
		s.originsToCheckpoint, s.dirtyOrigins = s.dirtyOrigins, nil
		slices.SortFunc(s.originsToCheckpoint, func(a, b *loadedOrigin) int { return cmp.Compare(a.number, b.number) })
		s.sweepEndSegment, s.changesBeforeSweepEnd = s.nextSegment, s.loggedChangeCount
	}
	pages := 0
	for len(s.originsToCheckpoint) > 0 && pages < s.opts.maxCheckpointPages {
		o := s.originsToCheckpoint[0]
		if o.pendingChanges.seenURLFingerprints.len() > s.opts.maxCheckpointPages {
			if pages == 0 {
				w.originCheckpoints = append(w.originCheckpoints, takeSeenForCheckpoint(o, s.opts.maxCheckpointPages))
			}
			return // the rest of o in the next
		}
		f := takeChangesForCheckpoint(o)
		s.originsToCheckpoint = s.originsToCheckpoint[1:]
		pages += f.estimateDBPages()
		w.originCheckpoints = append(w.originCheckpoints, f)
	}
	if len(s.originsToCheckpoint) == 0 {
		s.originsToCheckpoint = nil
		w.trimBeforeSegment, w.trimmedChangeCount = s.sweepEndSegment, s.changesBeforeSweepEnd
	}
}

// takeChangesForCheckpoint takes the changes of an origin.
func takeChangesForCheckpoint(o *loadedOrigin) originCheckpoint {
	f := originCheckpoint{originChanges: o.pendingChanges, origin: o, originNumber: o.number, isNew: o.isNew, name: o.name.String(), record: appendOriginRecord(nil, o)}
	o.pendingChanges, o.checkpointingChanges, o.isNew = nil, o.pendingChanges, false
	if h := o.host; h.uncheckpointed || f.isNew {
		h.uncheckpointed = false
		f.hostCheckpoint = &hostCheckpoint{h.number, h.name, record.AppendHostState(nil, &h.HostState)}
	}
	return f
}

// takeSeenForCheckpoint takes the first n fingerprints of an origin, ahead of its other
// changes, where there are so many that each could be on a page of its own.
// Until the pass is over they are in the log too, with the URLs they are of.
func takeSeenForCheckpoint(o *loadedOrigin, n int) originCheckpoint {
	f := originCheckpoint{originChanges: &originChanges{seenURLFingerprints: o.pendingChanges.seenURLFingerprints.takeFirstN(n)}, origin: o, originNumber: o.number}
	o.checkpointingChanges = f.originChanges
	return f
}

// markBatchWritten takes note that w is in the file.
func (s *Store) markBatchWritten(w *writeBatch) {
	for _, f := range w.originCheckpoints {
		s.bufferedChangeCount -= f.weightedChangeCount
		f.origin.checkpointingChanges = nil
		s.keepRecentOrigin(f.origin)
	}
	if w.newHosts != nil {
		s.bufferedChangeCount -= len(w.newHosts.hosts)
		s.admittedHosts.beingWritten = nil
	}
	s.loggedChangeCount -= w.trimmedChangeCount
	s.batchToWrite, s.lastWrittenBatchNumber = nil, w.number
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
		b := openChecksummedBucket(tx, step.bucket)
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

// updateLog brings the log up to date. What is folded already does not go there.
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
	if !f.isNew || names.Get(originNameKey(f.name)) != nil {
		return nil
	}
	if err := names.setOrDelete(originNameKey(f.name), numberKey(f.originNumber)); err != nil {
		return err
	}
	return names.setOrDelete(hostNameKey(f.hostCheckpoint.name), numberKey(f.hostCheckpoint.number))
}

func (f *originCheckpoint) putHostIfChanged(hosts checksummedBucket) error {
	if f.hostCheckpoint == nil {
		return nil
	}
	return hosts.setOrDelete(numberKey(f.hostCheckpoint.number), f.hostCheckpoint.record)
}

func (f *originCheckpoint) putRecord(origins checksummedBucket) error {
	if f.record == nil {
		return nil
	}
	return origins.setOrDelete(numberKey(f.originNumber), f.record)
}

func (f *originCheckpoint) applyURLChanges(urls checksummedBucket) error {
	key := make([]byte, 0, urlKeyLen)
	for c := f.urls.cursorFrom(slotChange{laneSlot: laneSlot{0, firstPosition}}); ; c.advance() {
		change, ok := c.peek()
		if !ok {
			return nil
		}
		if err := putOrDeleteIfNil(urls.Bucket, appendURLKey(key, f.originNumber, change.laneSlot), change.value); err != nil {
			return err
		}
	}
}

// putOrDeleteIfNil puts a value that ends with its checksum; a nil value deletes the key.
func putOrDeleteIfNil(b *bbolt.Bucket, key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, value)
}

func (f *originCheckpoint) putFingerprints(fingerprints checksummedBucket) error {
	added := make([]urlFingerprint, 0, f.seenURLFingerprints.len())
	for c := f.seenURLFingerprints.cursorFrom(0); ; c.advance() {
		p, ok := c.peek()
		if !ok {
			return addFingerprints(fingerprints, f.originNumber, added)
		}
		added = append(added, p)
	}
}

func (f *originCheckpoint) putRevisits(revisits checksummedBucket) error {
	for _, p := range slices.Sorted(maps.Keys(f.revisitPositions)) {
		var value []byte
		if at := f.revisitPositions[p]; at != noLanePosition {
			value = appendURLKey(nil, f.originNumber, laneSlot{schedule.AwaitingRevisit, at})
		}
		if err := revisits.setOrDelete(appendFingerprintKey(nil, f.originNumber, p), value); err != nil {
			return err
		}
	}
	return nil
}

func (f *originCheckpoint) putNotes(notes checksummedBucket) error {
	for _, key := range slices.Sorted(maps.Keys(f.notes)) {
		if err := notes.setOrDelete(appendNoteKey(nil, f.originNumber, key), f.notes[key]); err != nil {
			return err
		}
	}
	return nil
}
