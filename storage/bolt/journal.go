package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// maxLogFactor bounds the log, in changes for each that may be held: changes that
// undo each other are held once, and are all in the log.
const maxLogFactor = 4

// A journal holds the changes that are not in their place in the file: those since the last
// write, those of the log, and in which order both go to the file. It requires the lock of the
// store, but for a batch that nextBatch returned, which does not change.
type journal struct {
	opts     *Options
	damage   *damageReporter
	newHosts *admittedHostCounter // whose new hosts are written along

	// Changes since the last write.
	redoLog         redoLogBuffer
	unloggedOrigins []*residentOrigin // whose records have changed
	unloggedHosts   []*residentHost   // the same

	// Writes.
	lastBatchNumber        uint64      // number of the last write that was begun
	batchToWrite           *writeBatch // being written, or to be written again; nil if none is
	lastWrittenBatchNumber uint64      // number of the last write in the file
	unchangedSinceWrite    bool        // nothing has changed since the last write

	// The log in the file.
	nextSegment           uint64 // number of the next segment
	loggedChangeCount     int    // changes in the log
	sweepEndSegment       uint64 // the present sweep checkpoints all of the log before this segment
	changesBeforeSweepEnd int    // changes there

	// Changes by origin, until they are checkpointed.
	bufferedChangeCount int               // changes in memory
	dirtyOrigins        []*residentOrigin // with changes, to be checkpointed in the next sweep
	originsToCheckpoint []*residentOrigin // to be checkpointed in this one, in the order of their numbers
}

// markChanged takes note that o changes, and returns its changes.
func (j *journal) markChanged(o *residentOrigin) *originChanges {
	if !o.hasUnloggedChanges {
		o.hasUnloggedChanges = true
		j.unloggedOrigins = append(j.unloggedOrigins, o)
	}
	if o.pendingChanges == nil {
		o.pendingChanges = &originChanges{weightedChangeCount: 1}
		j.bufferedChangeCount++
		j.dirtyOrigins = append(j.dirtyOrigins, o)
	}
	return o.pendingChanges
}

// markOriginAndHostChanged takes note that the host of o changes, and o with it.
func (j *journal) markOriginAndHostChanged(o *residentOrigin) {
	j.markChanged(o)
	if h := o.host; !h.hasUnloggedChanges {
		h.hasUnloggedChanges = true
		j.unloggedHosts = append(j.unloggedHosts, h)
	}
	o.host.uncheckpointed = true
}

// putURL puts a URL into a slot of o.
func (j *journal) putURL(o *residentOrigin, at laneSlot, value []byte) {
	c := j.markChanged(o)
	c.putURL(at, j.redoLog.putURL(o.number, at, value))
	j.bufferedChangeCount += changeWeight(value)
}

// deleteURL deletes what is in a slot of o.
func (j *journal) deleteURL(o *residentOrigin, at laneSlot) {
	c := j.markChanged(o)
	j.redoLog.deleteURL(o.number, at)
	c.putURL(at, nil)
	j.bufferedChangeCount++
}

// addSeen puts a fingerprint into the seen set of an origin.
func (j *journal) addSeen(o *residentOrigin, p urlFingerprint) {
	j.markChanged(o).addSeen(p)
	j.redoLog.addSeen(o.number, p)
}

// setRevisitPosition notes in the index where the page of the fingerprint rests.
func (j *journal) setRevisitPosition(o *residentOrigin, p urlFingerprint, at urlQueuePosition) {
	j.redoLog.setURLRevisitPosition(o.number, p, at)
	j.markChanged(o).setURLRevisitPosition(p, at)
	j.bufferedChangeCount++
}

// setNote sets a note of an origin; nil deletes.
func (j *journal) setNote(o *residentOrigin, key string, value []byte) {
	j.markChanged(o).setNote(key, j.redoLog.setNote(o.number, key, value))
	j.bufferedChangeCount += changeWeight(value)
}

// admitHost counts a host, the n-th of its domain.
func (j *journal) admitHost(h storage.HostToAdmit, n int) {
	j.newHosts.add(h, n)
	j.bufferedChangeCount++
}

// isFull reports whether so much is held that calls must wait.
func (j *journal) isFull() bool {
	maxChanges := j.opts.bufferedChangeLimit()
	return j.bufferedChangeCount >= maxChanges || j.loggedChangeCount >= maxLogFactor*maxChanges
}

// shouldWriteNow reports whether there is so much to write that the next write should not
// wait for its time.
func (j *journal) shouldWriteNow() bool {
	return j.batchToWrite == nil && (j.redoLog.changeCount >= j.opts.FlushAfterChanges || j.isCheckpointUrgent())
}

// nextBatch returns the write that could not be made the last time, or the next one; nil if
// there is nothing to write.
func (j *journal) nextBatch() *writeBatch {
	if j.batchToWrite == nil {
		j.batchToWrite = j.buildWriteBatch()
	}
	return j.batchToWrite
}

// isCheckpointUrgent reports whether so much is held that it should be checkpointed now.
func (j *journal) isCheckpointUrgent() bool {
	maxChanges := j.opts.bufferedChangeLimit()
	return j.bufferedChangeCount >= maxChanges*3/4 || j.loggedChangeCount >= maxLogFactor*maxChanges*3/4
}

// shouldCheckpointWhileBusy reports whether there is time to checkpoint beside so many changes that are to be
// written, and enough held for it to be worth it: several for each origin. A store
// that is never quite idle, as a daemon's, would otherwise hold what a fast crawl needs.
func (j *journal) shouldCheckpointWhileBusy(unwritten int) bool {
	const several = 4
	isWorthwhile := j.bufferedChangeCount >= max(j.opts.bufferedChangeLimit()/8, several*len(j.dirtyOrigins))
	return unwritten < j.opts.FlushAfterChanges/8 && (isWorthwhile || len(j.originsToCheckpoint) > 0)
}

// unwrittenChangeCount returns how many changes are to be written, about.
func (j *journal) unwrittenChangeCount() int {
	return j.redoLog.changeCount + len(j.unloggedOrigins) + len(j.unloggedHosts) + len(j.newHosts.pending.hosts)
}

// buildWriteBatch makes the next write; nil if there is nothing to write.
func (j *journal) buildWriteBatch() *writeBatch {
	unwritten := j.unwrittenChangeCount()
	idle := unwritten == 0
	if idle && (j.loggedChangeCount == 0 || !j.unchangedSinceWrite && !j.isCheckpointUrgent()) {
		j.unchangedSinceWrite = true
		return nil
	}
	j.unchangedSinceWrite = idle
	j.lastBatchNumber++
	w := &writeBatch{number: j.lastBatchNumber, firstSegment: j.nextSegment, newHosts: j.newHosts.takePending()}
	j.appendChangedOriginsAndHosts()
	j.loggedChangeCount += j.redoLog.changeCount
	w.segments = j.redoLog.takeSegments()
	j.nextSegment += uint64(len(w.segments))
	if idle || j.isCheckpointUrgent() || j.shouldCheckpointWhileBusy(unwritten) {
		j.addDirtyOriginsToBatch(w)
	}
	return w
}

// appendChangedOriginsAndHosts puts into the log what the changed origins and hosts are now.
func (j *journal) appendChangedOriginsAndHosts() {
	var buf []byte
	for _, o := range j.unloggedOrigins {
		o.hasUnloggedChanges = false
		buf = appendOriginRecord(buf[:0], o)
		j.redoLog.putRecord(opOrigin, o.number, buf)
	}
	for _, h := range j.unloggedHosts {
		h.hasUnloggedChanges = false
		buf = record.AppendHostState(buf[:0], &h.HostState)
		j.redoLog.putRecord(opHost, h.number, buf)
	}
	clear(j.unloggedOrigins) // lets them be collected
	clear(j.unloggedHosts)
	j.unloggedOrigins, j.unloggedHosts = j.unloggedOrigins[:0], j.unloggedHosts[:0]
}

// addDirtyOriginsToBatch adds the next origins of the sweep to w: their state of now, all of
// which is in the log or in w. A sweep checkpoints every origin that has changes at
// its beginning, in the order of the file; when it has ended, the log from
// before is not needed any more.
func (j *journal) addDirtyOriginsToBatch(w *writeBatch) {
	if len(j.originsToCheckpoint) == 0 {
		j.originsToCheckpoint, j.dirtyOrigins = j.dirtyOrigins, nil
		slices.SortFunc(j.originsToCheckpoint, func(a, b *residentOrigin) int { return cmp.Compare(a.number, b.number) })
		j.sweepEndSegment, j.changesBeforeSweepEnd = j.nextSegment, j.loggedChangeCount
	}
	pages := 0
	for len(j.originsToCheckpoint) > 0 && pages < j.opts.maxCheckpointPages {
		o := j.originsToCheckpoint[0]
		if o.pendingChanges.seenURLFingerprints.len() > j.opts.maxCheckpointPages {
			if pages == 0 {
				w.originCheckpoints = append(w.originCheckpoints, takeSeenForCheckpoint(o, j.opts.maxCheckpointPages))
			}
			return // the rest of o in the next
		}
		f := takeChangesForCheckpoint(o)
		j.originsToCheckpoint = j.originsToCheckpoint[1:]
		pages += f.estimateDBPages()
		w.originCheckpoints = append(w.originCheckpoints, f)
	}
	if len(j.originsToCheckpoint) == 0 {
		j.originsToCheckpoint = nil
		w.trimBeforeSegment, w.trimmedChangeCount = j.sweepEndSegment, j.changesBeforeSweepEnd
	}
}

// takeChangesForCheckpoint takes the changes of an origin.
func takeChangesForCheckpoint(o *residentOrigin) originCheckpoint {
	f := originCheckpoint{
		originChanges: o.pendingChanges, origin: o, isNew: o.isNew, record: appendOriginRecord(nil, o),
	}
	o.pendingChanges, o.checkpointingChanges, o.isNew = nil, o.pendingChanges, false
	if h := o.host; h.uncheckpointed || f.isNew {
		h.uncheckpointed = false
		f.hostRecord = record.AppendHostState(nil, &h.HostState)
	}
	return f
}

// takeSeenForCheckpoint takes the first n fingerprints of an origin, ahead of its other
// changes, where there are so many that each could be on a page of its own.
// Until the sweep is over they are in the log too, with the URLs they are of.
func takeSeenForCheckpoint(o *residentOrigin, n int) originCheckpoint {
	taken := &originChanges{seenURLFingerprints: o.pendingChanges.seenURLFingerprints.takeFirstN(n)}
	f := originCheckpoint{originChanges: taken, origin: o}
	o.checkpointingChanges = f.originChanges
	return f
}

// markBatchWritten takes note that w is in the file, and calls checkpointed with each origin
// of which it brought changes to their place.
func (j *journal) markBatchWritten(w *writeBatch, checkpointed func(*residentOrigin)) {
	for _, f := range w.originCheckpoints {
		j.bufferedChangeCount -= f.weightedChangeCount
		f.origin.checkpointingChanges = nil
		checkpointed(f.origin)
	}
	j.bufferedChangeCount -= len(w.newHosts.hosts)
	j.newHosts.beingWritten = unwrittenNewHosts{}
	j.loggedChangeCount -= w.trimmedChangeCount
	j.batchToWrite, j.lastWrittenBatchNumber = nil, w.number
}

// replay reads the log back into memory: its changes become what they were before the process
// ended, changes that are yet to be checkpointed. Where they were checkpointed already, that makes no
// difference. adoptReplayed must be called with each origin of the result.
func (j *journal) replay(tx *bbolt.Tx) (*replayedLogState, error) {
	log := &replayedLogState{make(map[uint32]*residentOrigin), make(map[uint32][]byte), make(map[uint32]bool)}
	err := tx.Bucket([]byte(bucketLog)).ForEach(func(key, segment []byte) error {
		if len(key) != 8 {
			return j.damage.errorf("log: key %x", key)
		}
		j.nextSegment = binary.BigEndian.Uint64(key) + 1
		segment, err := verifyAndTrimChecksum(key, segment)
		if err != nil {
			return j.damage.errorf("log: piece %x: %v", key, err)
		}
		n, err := replaySegment(bytes.Clone(segment), log) // pages move while changes stay
		j.loggedChangeCount += n
		if err != nil {
			return j.damage.errorf("log: piece %x: %v", key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(log.originsWithoutRecord) > 0 {
		return nil, j.damage.errorf("log: %d origins have changes and no name", len(log.originsWithoutRecord))
	}
	return log, nil
}

// adoptReplayed takes up the changes of an origin that replay returned.
func (j *journal) adoptReplayed(o *residentOrigin) {
	j.bufferedChangeCount += o.pendingChanges.weightedChangeCount
	j.dirtyOrigins = append(j.dirtyOrigins, o)
}

// A replayedLogState is the changes that it makes, and the origins and hosts as
// they are in the end.
type replayedLogState struct {
	origins              map[uint32]*residentOrigin
	hostRecords          map[uint32][]byte
	originsWithoutRecord map[uint32]bool // origins without a record so far
}

func (r *replayedLogState) getOrCreateOrigin(number uint32) *residentOrigin {
	o := r.origins[number]
	if o == nil {
		o = &residentOrigin{number: number, pendingChanges: &originChanges{weightedChangeCount: 1}, isNew: true}
		r.origins[number], r.originsWithoutRecord[number] = o, true
	}
	return o
}

func (r *replayedLogState) setOrigin(number uint32, value []byte) error {
	o := r.getOrCreateOrigin(number)
	delete(r.originsWithoutRecord, number)
	return parseOriginRecord(value, o)
}
